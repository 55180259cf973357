"""Predictions of other systems: read from their files, matched to our questions, and scored in our table."""
