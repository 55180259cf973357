"""The routes that vote on an answer, one file each, exporting `ROUTE`.

Built-in files, files of `ROUTES_DIR` and entry points of the group `meta_agent_rag.routes` obey the same rules. Only
the values are exported here, so that the state can hold them.
"""

from .vote import DERIVATION, DRAFT, Ballot, RouteAnswer, Vote

__all__ = ["DERIVATION", "DRAFT", "Ballot", "RouteAnswer", "Vote"]
