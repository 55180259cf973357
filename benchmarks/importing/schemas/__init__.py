"""Schemas of prediction files; each file of this folder that exports `SCHEMA` is one."""

from collections.abc import Mapping

from meta_agent_rag.discovery import by_name, exported

from .schema import Prediction, PredictionRow, Schema

__all__ = ["Prediction", "PredictionRow", "Schema", "discover_schemas"]


def discover_schemas(package: str = __package__) -> Mapping[str, Schema]:
    """All schemas by name, in the order of file names."""
    return by_name(exported(package, "SCHEMA", Schema), "schemas")
