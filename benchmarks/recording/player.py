"""Play back a recorded run: its rows unchanged, or the same replies, searches, vectors and durations again."""

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meta_agent_rag import errors
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError, MetaRagError
from meta_agent_rag.llm.cache import reply_from
from meta_agent_rag.llm.ledger import LedgerRow, ledger_row
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.llm.pricing import Tariff
from meta_agent_rag.llm.providers import providers
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.vectors import FloatVector

from ..rows.shape import fault
from ..run.arms import Arm
from ..run.folder import current
from .records import FORMAT, WITHOUT_ROWS, passage_from, question_from, read_lines, retrieval_from, vector_from
from .rows import scored
from .table import Quadrant, arms_from, quadrants_from, tariffs_from
from .taped import Search

_HEAD = ("experiment", "settings", "provider", "dataset", "encoders", "endpoint", "pooled", "model_words")
_NAMED = ("deficits", "prompts", "calibration", "rows", "arms", "quadrants", "analyses", "tariffs")
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)
_Asked = tuple[str, str, str]
"""Question id, row of the table, key of the request."""


class ReplayError(MetaRagError):
    """The run asks for something that its record does not contain."""

    stops_run = True


@dataclass(kw_only=True)
class Player:
    """A record that has been read; each call and search is returned as often as it was made.

    `arms` are the rows of its table, `quadrants` those of its deficits and `tariffs` the prices that its analyses
    use; a record without answers names none of them.
    """

    path: Path
    sha256: str
    run: Mapping[str, Any]
    questions: tuple[Question, ...]
    summary_sha256: str
    arms: tuple[Arm, ...]
    quadrants: Mapping[str, Quadrant | None]
    tariffs: Mapping[str, Tariff]
    _calls: dict[_Asked, deque[Mapping[str, Any]]] = field(default_factory=lambda: defaultdict(deque))
    _searches: dict[Search, deque[Retrieval | Exception]] = field(default_factory=lambda: defaultdict(deque))
    _vectors: dict[tuple[str | None, str, str], FloatVector] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _made: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, *, strict: bool = False) -> "Player":
        """Read a record; raises `DataFileError` if the file is not a record, or has another format.

        If `strict`, it may have the format without rows: only calls are played.
        """
        lines = list(read_lines(path))
        if not lines or lines[0][0] != "run" or lines[-1][0] != "summary":
            raise DataFileError(f"{path.name} is not a complete record of a run; record the run again with --record.")
        run = lines[0][1]
        if (given := run.get("format")) == WITHOUT_ROWS and not strict:
            raise DataFileError(
                f"{path.name} has the format {WITHOUT_ROWS}, which contains no answers; if its prompts are still "
                f"current, --replay {path.name} --strict --record FILE converts it."
            )
        if given not in (FORMAT, WITHOUT_ROWS):
            raise DataFileError(f"{path.name} has the format {given!r} instead of {FORMAT}; record the run again.")
        lacking = [name for name in (*_HEAD, *(() if strict else _NAMED)) if name not in run]
        if lacking or run["provider"].get("name") not in providers():
            fault = f"lacks {' and '.join(lacking)}" if lacking else "names an unknown provider"
            raise DataFileError(f"{path.name} {fault}; record the run again.")
        try:
            return _read(path, lines)
        except _DAMAGE as error:
            raise DataFileError(f"{path.name} has a damaged line ({error!r}); record the run again.") from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every recorded answer as a row of `samples.jsonl`, scored now, question by question.

        Raises `DataFileError` if one is missing or damaged, or lacks a call.
        """
        made = Counter((call["question_id"], call["method"]) for call in self._made)
        for question in self.questions:
            for arm in self.arms:
                row = self._row(question, arm)
                if made[question.id, arm.name] < row["llm_calls"]:
                    raise DataFileError(
                        f"{self.path.name} contains {made[question.id, arm.name]} of {row['llm_calls']} calls of "
                        f"{arm.name!r} for {question.id!r}; record the run again."
                    )
                yield row

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The ledger's rows, in the order of the record."""
        return self._made

    def _row(self, question: Question, arm: Arm) -> dict[str, Any]:
        content = self._answers.get((question.id, arm.name))
        if content is None:
            raise DataFileError(
                f"{self.path.name} contains no answer of {arm.name!r} to {question.id!r}; record the run again."
            )
        try:
            row = scored(content, question, quotes=arm.method.quotes)
            damage = fault(row)
        except _DAMAGE as error:
            damage = repr(error)
        if damage is not None:
            raise DataFileError(
                f"{self.path.name} has a damaged row, of {arm.name!r} for {question.id!r} ({damage}); "
                "record the run again."
            )
        return row

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception]:
        """The recorded row of this call, and its reply or the error that was raised."""
        left = self._calls.get((row.question_id, row.method, row.request))
        if not left:
            raise ReplayError(
                f"{self.path.name} contains no call of stage {row.stage!r} for question {row.question_id!r} by "
                f"{row.method!r} with this prompt: prompts, settings or code have changed; record the run again."
            )
        call = left.popleft()
        recorded = ledger_row(dict(call["row"]))
        return recorded, _raised(*call["raised"]) if "raised" in call else reply_from(call["reply"])

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Nothing is recorded during a replay."""

    def play_search(self, search: Search) -> Retrieval | None:
        """What the search found when it was recorded; raises the error that was raised."""
        left = self._searches.get(search)
        if not left:
            raise ReplayError(
                f"{self.path.name} contains no search for {' | '.join(search.queries)!r} (question "
                f"{search.question_id!r} by {search.method!r}): settings or code have changed; record the run again."
            )
        outcome = left.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def keep_search(self, search: Search, outcome: Retrieval | MetaRagError) -> None:
        """Nothing is recorded during a replay."""

    def play_vector(self, encoder: str, kind: str, text: str) -> FloatVector | None:
        """The text's vector by the encoder that served under this name; older records do not distinguish encoders."""
        served = self.run["encoders"].get(encoder, encoder)
        for name in (served, None):
            if (name, kind, text) in self._vectors:
                return self._vectors[name, kind, text]
        raise ReplayError(f"{self.path.name} contains no vector of {text!r} by {served!r}; record the run again.")

    def keep_vector(self, encoder: str, kind: str, text: str, vector: FloatVector) -> None:
        """Nothing is recorded during a replay."""

    def seconds(self, question_id: str, method: str) -> float:
        """How long the answer took when it was recorded."""
        return float(self._answers.get((question_id, method), {}).get("latency_s", 0.0))


def _read(path: Path, lines: list[tuple[str, Any]]) -> Player:
    player = Player(
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        run=current(lines[0][1]),
        questions=tuple(question_from(content) for kind, content in lines if kind == "question"),
        summary_sha256=lines[-1][1]["sha256"],
        quadrants=quadrants_from(lines[0][1]),
        tariffs=tariffs_from(lines[0][1]),
        arms=arms_from(lines[0][1]),
    )
    passages: dict[str, Passage] = {}
    for kind, content in lines:
        if kind == "passage":
            passages[content["id"]] = passage_from(content)
        elif kind == "call":
            row = content["row"]
            player._made.append(row)
            player._calls[row["question_id"], row["method"], row["request"]].append(content)
        elif kind == "retrieval":
            asked = {name: content[name] for name in ("question_id", "method", "k")}
            queries, exclude = tuple(content["queries"]), tuple(content["exclude"])
            search = Search(**asked, queries=queries, exclude=exclude)
            raised = content.get("raised")
            player._searches[search].append(_raised(*raised) if raised else retrieval_from(content, passages))
        elif kind == "vectors":
            player._vectors[content.get("encoder"), content["kind"], content["text"]] = vector_from(content["values"])
        elif kind in ("answer", "row"):
            player._answers[content["id"], content["method"]] = content
    return player


def _raised(name: str, message: str) -> Exception:
    """An error by its recorded class; a class that is not ours becomes a `ModelError`."""
    kind = getattr(errors, name, errors.ModelError)
    return kind(message) if issubclass(kind, MetaRagError) else errors.ModelError(message)
