"""Overviews of whole documents: summaries section by section, and comparisons; every point is checked and cited."""
