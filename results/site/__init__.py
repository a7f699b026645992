"""The static site: self-contained, readable without a network, safe to publish."""
