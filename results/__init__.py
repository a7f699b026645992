"""What came out: records, run folders, statistics, reports."""
