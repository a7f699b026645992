"""EHR data quality auditing."""
