"""The real sources of the clinical edition: what they are, what they ask, and how their files come to this machine."""
