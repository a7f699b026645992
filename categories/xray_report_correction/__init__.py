"""Chest X-ray report correction: a draft against the patient's pictures and earlier reports."""
