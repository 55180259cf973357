"""Recorded runs: every call, search and vector, and the replay of a run without a model."""

from .player import Player, ReplayError
from .recorder import Recorder
from .table import table_content
from .taped import TapedEncoder, TapedRetriever

__all__ = ["Player", "Recorder", "ReplayError", "TapedEncoder", "TapedRetriever", "table_content"]
