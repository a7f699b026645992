"""Clinical trial matching."""
