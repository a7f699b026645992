"""EHR event modelling: new diagnoses in the year after a hospital discharge, from long coded timelines."""
