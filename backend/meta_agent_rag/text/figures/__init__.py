"""Figures in running text, in some twenty-five languages: numbers with their units, dates and times of day."""

from .figure import Figure
from .reading import figures, in_digits

__all__ = ["Figure", "figures", "in_digits"]
