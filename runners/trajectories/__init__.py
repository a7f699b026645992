"""From each agent CLI's own logs to one trajectory (ATIF)."""
