"""EHR format conversion: MIMIC-IV-shaped tables to MEDS, with an event configuration changed as a request asks."""
