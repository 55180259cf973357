"""Checks an answer against its evidence without a model."""
