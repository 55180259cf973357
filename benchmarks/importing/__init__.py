"""Predictions of other systems: read from files, matched to our questions, and scored in our table."""
