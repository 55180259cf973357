"""Recorded runs: every call, search and vector, and the replay of a run without a model."""

from .format import Search, table_content
from .recorder import Recorder
from .recording import Recording, ReplayError
from .taped import TapedEncoder, TapedRetriever

__all__ = ["Recorder", "Recording", "ReplayError", "Search", "TapedEncoder", "TapedRetriever", "table_content"]
