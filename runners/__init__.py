"""Where trials happen."""
