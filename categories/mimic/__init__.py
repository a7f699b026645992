"""What the categories on MIMIC-IV share (``shares = ["mimic"]``): how real tables are put under other names."""
