"""The graph that `langgraph.json` names, for LangGraph's own server and Studio; it opens nothing until it runs."""

from ..settings import Settings
from .graph import build_graph

graph = build_graph(settings=Settings.load(), grounded=True)
