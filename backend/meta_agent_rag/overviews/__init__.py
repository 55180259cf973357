"""Whole documents: what one says, section by section, and how two compare; every point is checked and cited."""
