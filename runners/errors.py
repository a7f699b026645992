"""Errors of models and their endpoints: which class, and whose fault."""

ENVIRONMENT_CLASSES = frozenset({"rate_limit", "provider"})
CONFIGURATION_CLASSES = frozenset({"auth", "model"})
