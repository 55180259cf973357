"""Screens passages for text that addresses the model instead of the reader."""
