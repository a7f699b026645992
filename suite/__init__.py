"""The front door: words in, exit code out."""
