"""Keeps a run, to be written once it is complete."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from meta_agent_rag.llm.exchange import Reply, Request
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.vectors import FloatVector

from ..datasets import Question
from .player import Player
from .records import FORMAT, Line, question_line, read_lines, retrieval_content, vector_text, write_lines
from .taped import Search


@dataclass(kw_only=True)
class Recorder:
    """Holds the lines of a record, in the order in which things happened."""

    path: Path
    lines: list[Line] = field(default_factory=list)
    _passages: set[str] = field(default_factory=set)
    _vectors: set[tuple[str, str]] = field(default_factory=set)

    def begin(self, run: Mapping[str, Any], questions: Iterable[Question]) -> None:
        """What is run, and over which questions."""
        self.lines.append({"run": {"format": FORMAT, **run}})
        self.lines += [question_line(question) for question in questions]

    def play(self, row: LedgerRow, request: Request) -> None:
        """Nothing is played while a run is recorded."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """A call with its prompt and its reply, or what was raised."""
        prompt = [[message.role, message.content] for message in request.messages]
        if isinstance(outcome, Reply):
            came: dict[str, Any] = {"reply": asdict(outcome)}
        else:
            came = {"raised": [type(outcome).__name__, str(outcome)]}
        self.lines.append({"call": {"row": vars(row), "prompt": prompt, **came}})

    def play_search(self, search: Search) -> None:
        """Nothing is played while a run is recorded."""

    def keep_search(self, search: Search, found: Retrieval) -> None:
        """A search, and the passages that were not found before."""
        for one in found.found:
            if one.passage.id not in self._passages:
                self._passages.add(one.passage.id)
                self.lines.append({"passage": asdict(one.passage)})
        self.lines.append({"retrieval": {**vars(search), **retrieval_content(found)}})

    def play_vector(self, kind: str, text: str) -> None:
        """Nothing is played while a run is recorded."""

    def keep_vector(self, kind: str, text: str, vector: FloatVector) -> None:
        """A text's vector, once."""
        if (kind, text) not in self._vectors:
            self._vectors.add((kind, text))
            self.lines.append({"vectors": {"kind": kind, "text": text, "values": vector_text(vector)}})

    def answered(self, question_id: str, method: str, latency_s: float) -> None:
        """A question was answered, or failed, after so many seconds."""
        self.lines.append({"answer": {"id": question_id, "method": method, "latency_s": latency_s}})

    def finish(self, summary_sha256: str, *, of: Player | None = None) -> None:
        """Write the record: of this run, or of the calls that a player has played."""
        lines = self.lines if of is None else [{kind: content} for kind, content in read_lines(of.path)][:-1]
        write_lines(self.path, [*lines, {"summary": {"sha256": summary_sha256}}])
