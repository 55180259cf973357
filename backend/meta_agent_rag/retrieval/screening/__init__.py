"""Screening of passages for text that is addressed to the model instead of the reader."""
