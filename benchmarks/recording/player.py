"""Plays a recorded run: the same replies, searches, vectors and durations, and no call at all."""

import hashlib
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meta_agent_rag import errors
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError, MetaRagError
from meta_agent_rag.llm.cache import reply_from
from meta_agent_rag.llm.exchange import Reply, Request
from meta_agent_rag.llm.ledger import LedgerRow, ledger_row
from meta_agent_rag.llm.providers import providers
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.vectors import FloatVector

from .records import FORMAT, passage_from, question_from, read_lines, retrieval_from, vector_from
from .taped import Search

_HEAD = ("experiment", "settings", "provider", "dataset", "encoders", "endpoint", "pooled", "model_words")
_Asked = tuple[str, str, str]
"""Question id, row of the table, key of the request."""


class ReplayError(MetaRagError):
    """The run asks for what its record does not hold."""

    stops_run = True


@dataclass(kw_only=True)
class Player:
    """A record, read; each call and search is handed out as often as it was made."""

    path: Path
    sha256: str
    run: Mapping[str, Any]
    questions: tuple[Question, ...]
    summary_sha256: str
    _calls: dict[_Asked, deque[Mapping[str, Any]]] = field(default_factory=lambda: defaultdict(deque))
    _searches: dict[Search, deque[Retrieval | Exception]] = field(default_factory=lambda: defaultdict(deque))
    _vectors: dict[tuple[str | None, str, str], FloatVector] = field(default_factory=dict)
    _seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Player":
        """Read a record; raises `DataFileError` where it is none, or of another format."""
        lines = list(read_lines(path))
        if not lines or lines[0][0] != "run" or lines[-1][0] != "summary":
            raise DataFileError(f"{path.name} is no whole record of a run; record the run anew with --record.")
        run = lines[0][1]
        if run.get("format") != FORMAT:
            raise DataFileError(f"{path.name} has the format {run.get('format')!r}, and {FORMAT} is read; record anew.")
        lacking = [name for name in _HEAD if name not in run]
        if lacking or run["provider"].get("name") not in providers():
            raise DataFileError(f"{path.name} does not say {' and '.join(lacking) or 'a known provider'}; record anew.")
        try:
            return _read(path, lines)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise DataFileError(f"{path.name} has a damaged line ({error!r}); record the run anew.") from None

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception]:
        """The recorded row of this call, and its reply or what was raised then."""
        left = self._calls.get((row.question_id, row.method, row.request))
        if not left:
            raise ReplayError(
                f"{self.path.name} holds no call of stage {row.stage!r} for question {row.question_id!r} by "
                f"{row.method!r} with this prompt: prompts, settings or code have changed since; record the run anew."
            )
        call = left.popleft()
        recorded = ledger_row(dict(call["row"]))
        return recorded, _raised(*call["raised"]) if "raised" in call else reply_from(call["reply"])

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Nothing is kept while a record is played."""

    def play_search(self, search: Search) -> Retrieval | None:
        """What the search found then; raises what was raised then."""
        left = self._searches.get(search)
        if not left:
            raise ReplayError(
                f"{self.path.name} holds no search for {' | '.join(search.queries)!r} (question "
                f"{search.question_id!r} by {search.method!r}): settings or code have changed since; record it anew."
            )
        outcome = left.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def keep_search(self, search: Search, outcome: Retrieval | MetaRagError) -> None:
        """Nothing is kept while a record is played."""

    def play_vector(self, encoder: str, kind: str, text: str) -> FloatVector | None:
        """The text's vector by the encoder that served under this name; an older record does not tell them apart."""
        served = self.run["encoders"].get(encoder, encoder)
        for name in (served, None):
            if (name, kind, text) in self._vectors:
                return self._vectors[name, kind, text]
        raise ReplayError(f"{self.path.name} holds no vector of {text!r} by {served!r}; record the run anew.")

    def keep_vector(self, encoder: str, kind: str, text: str, vector: FloatVector) -> None:
        """Nothing is kept while a record is played."""

    def seconds(self, question_id: str, method: str) -> float:
        """How long the answer took when it was recorded."""
        return self._seconds.get((question_id, method), 0.0)


def _read(path: Path, lines: list[tuple[str, Any]]) -> Player:
    player = Player(
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        run=lines[0][1],
        questions=tuple(question_from(content) for kind, content in lines if kind == "question"),
        summary_sha256=lines[-1][1]["sha256"],
    )
    passages: dict[str, Passage] = {}
    for kind, content in lines:
        if kind == "passage":
            passages[content["id"]] = passage_from(content)
        elif kind == "call":
            row = content["row"]
            player._calls[row["question_id"], row["method"], row["request"]].append(content)
        elif kind == "retrieval":
            asked = {name: content[name] for name in ("question_id", "method", "k")}
            queries, exclude = tuple(content["queries"]), tuple(content["exclude"])
            search = Search(**asked, queries=queries, exclude=exclude)
            raised = content.get("raised")
            player._searches[search].append(_raised(*raised) if raised else retrieval_from(content, passages))
        elif kind == "vectors":
            player._vectors[content.get("encoder"), content["kind"], content["text"]] = vector_from(content["values"])
        elif kind == "answer":
            player._seconds[content["id"], content["method"]] = content["latency_s"]
    return player


def _raised(name: str, message: str) -> Exception:
    """An error by its recorded class; one that is not ours is a `ModelError`."""
    kind = getattr(errors, name, errors.ModelError)
    return kind(message) if issubclass(kind, MetaRagError) else errors.ModelError(message)
