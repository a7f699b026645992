"""The adapters for agent CLIs: one file each, what differs and nothing else."""
