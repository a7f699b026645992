"""CT abnormality classification: a chest CT and seventeen questions about it."""
