"""Analyses of a run's rows beyond their scores; each file of this folder that exports `ANALYSIS` is one."""

from meta_agent_rag.discovery import exported
from meta_agent_rag.errors import DuplicateNameError

from .analysis import Analysis, Figures, Material, Row

__all__ = ["Analysis", "Figures", "Material", "Row", "discover_analyses"]


def discover_analyses(package: str = __package__) -> tuple[Analysis, ...]:
    """All analyses in the order of the report; raises `DuplicateNameError`."""
    found = sorted(exported(package, "ANALYSIS", Analysis), key=lambda analysis: (analysis.order, analysis.name))
    names = [analysis.name for analysis in found]
    for name in names:
        if names.count(name) > 1:
            raise DuplicateNameError(f"Two analyses are named {name!r}; rename one of them.")
    return tuple(found)
