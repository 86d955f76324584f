"""The scenarios, by subject."""
