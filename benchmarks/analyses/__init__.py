"""What a run's rows say beyond their scores; a file of this folder that exports `ANALYSIS` is one analysis."""

from .analysis import Analysis, Figures, Material, Row
from .registry import discover_analyses

__all__ = ["Analysis", "Figures", "Material", "Row", "discover_analyses"]
