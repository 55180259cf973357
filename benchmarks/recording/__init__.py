"""A run on record: every call, search and vector of it, and the same run again without a model."""

from .player import Player, ReplayError
from .recorder import Recorder
from .table import table_content
from .taped import TapedEncoder, TapedRetriever

__all__ = ["Player", "Recorder", "ReplayError", "TapedEncoder", "TapedRetriever", "table_content"]
