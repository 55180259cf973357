"""Checks of an answer against its evidence that need no model."""
