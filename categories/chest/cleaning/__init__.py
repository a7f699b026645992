"""Derive the template: the real scan made normal and non-contrast, or a procedural phantom where it cannot be had."""
