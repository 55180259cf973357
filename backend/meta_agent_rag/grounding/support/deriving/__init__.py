"""Figures of a claim that follow from others: which are tried together, and what they give."""
