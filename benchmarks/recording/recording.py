"""A recorded run that is read back: its rows unchanged, or the same replies, searches, vectors and durations again."""

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
from meta_agent_rag.retrieval.passage import Passage, from_fields
from meta_agent_rag.retrieval.vectors import FloatVector

from ..rows.samples import fault
from ..rows.scorers import Scorer, scorer_named
from ..run.arms import Arm
from .format import (
    FORMAT,
    Quadrant,
    Search,
    arms_from,
    quadrants_from,
    question_from,
    read_lines,
    retrieval_from,
    scored,
    tariffs_from,
    vector_from,
)

_NEEDED = (
    *("experiment", "settings", "provider", "dataset", "encoders", "endpoint", "pooled", "model_words"),
    *("arms", "quadrants", "analyses", "tariffs"),
)
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)


class ReplayError(MetaRagError):
    """The run asks for something that its record does not contain."""

    stops_run = True


@dataclass(kw_only=True)
class Recording:
    """A record that has been read; each call and search is returned as often as it was made.

    `arms` are the rows of its table, `quadrants` those of its deficits, and `tariffs` the prices of its analyses.
    """

    path: Path
    sha256: str
    run: Mapping[str, Any]
    questions: tuple[Question, ...]
    summary_sha256: str
    arms: tuple[Arm, ...]
    quadrants: Mapping[str, Quadrant | None]
    tariffs: Mapping[str, Tariff]
    _calls: dict[tuple[str, str, str], deque[Mapping[str, Any]]] = field(default_factory=lambda: defaultdict(deque))
    _searches: dict[Search, deque[Retrieval | Exception]] = field(default_factory=lambda: defaultdict(deque))
    _vectors: dict[tuple[str | None, str, str], FloatVector] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _made: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """Read a record; raises `DataFileError` if the file is not a record, or has another format."""
        lines = list(read_lines(path))
        if not lines or lines[0][0] != "run" or lines[-1][0] != "summary":
            raise DataFileError(f"{path.name} is not a complete record of a run; record the run again with --record.")
        run = lines[0][1]
        if run.get("format") != FORMAT:
            raise DataFileError(
                f"{path.name} has the format {run.get('format')!r} instead of {FORMAT}; record the run again."
            )
        lacking = [name for name in _NEEDED if name not in run]
        if lacking or run["provider"].get("name") not in providers():
            why = f"lacks {' and '.join(lacking)}" if lacking else "names an unknown provider"
            raise DataFileError(f"{path.name} {why}; record the run again.")
        try:
            return _read(path, lines)
        except _DAMAGE as error:
            raise DataFileError(f"{path.name} has a damaged line ({error!r}); record the run again.") from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every recorded answer as a row of `samples.jsonl`, scored now, question by question.

        Raises `DataFileError` if one is missing or damaged, or lacks a call.
        """
        made = Counter((call["question_id"], call["method"]) for call in self._made)
        scorer = scorer_named(self.run["experiment"].get("scorer", "official"))
        for question in self.questions:
            for arm in self.arms:
                row = self._row(question, arm, scorer)
                if made[question.id, arm.name] < row["llm_calls"]:
                    raise self._lacks(
                        f"{made[question.id, arm.name]} of {row['llm_calls']} calls of {arm.name!r} for {question.id!r}"
                    )
                yield row

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The ledger's rows, in the order of the record."""
        return self._made

    def _row(self, question: Question, arm: Arm, scorer: Scorer) -> dict[str, Any]:
        content = self._answers.get((question.id, arm.name))
        if content is None:
            raise self._lacks(f"no answer of {arm.name!r} to {question.id!r}")
        try:
            row = scored(content, question, quotes=arm.method.quotes, scorer=scorer)
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

    def play_search(self, search: Search) -> Retrieval:
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

    def play_vector(self, encoder: str, kind: str, text: str) -> FloatVector:
        """The text's vector by the encoder that served under this name; older records do not distinguish encoders."""
        served = self.run["encoders"].get(encoder, encoder)
        for name in (served, encoder, None):
            if (name, kind, text) in self._vectors:
                return self._vectors[name, kind, text]
        raise ReplayError(f"{self.path.name} contains no vector of {text!r} by {served!r}; record the run again.")

    def times(self, question_id: str, method: str) -> dict[str, float]:
        """How long the answer took and waited when it was recorded, as a row has it."""
        kept = self._answers.get((question_id, method), {"latency_s": 0.0})
        return {name: float(kept[name]) for name in ("latency_s", "waited_s") if name in kept}

    def _lacks(self, what: str) -> DataFileError:
        return DataFileError(f"{self.path.name} contains {what}; record the run again.")


def _read(path: Path, lines: Sequence[tuple[str, Any]]) -> Recording:
    run = lines[0][1]
    recording = Recording(
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        run=run,
        questions=tuple(question_from(content) for kind, content in lines if kind == "question"),
        summary_sha256=lines[-1][1]["sha256"],
        quadrants=quadrants_from(run),
        tariffs=tariffs_from(run),
        arms=arms_from(run),
    )
    passages: dict[str, Passage] = {}
    for kind, content in lines:
        if kind == "passage":
            passages[content["id"]] = from_fields(content)
        elif kind == "call":
            row = content["row"]
            recording._made.append(row)
            recording._calls[row["question_id"], row["method"], row["request"]].append(content)
        elif kind == "retrieval":
            search = Search(
                question_id=content["question_id"],
                method=content["method"],
                queries=tuple(content["queries"]),
                k=content["k"],
                exclude=tuple(content["exclude"]),
            )
            raised = content.get("raised")
            recording._searches[search].append(_raised(*raised) if raised else retrieval_from(content, passages))
        elif kind == "vectors":
            recording._vectors[content.get("encoder"), content["kind"], content["text"]] = vector_from(
                content["values"]
            )
        elif kind == "row":
            recording._answers[content["id"], content["method"]] = content
    return recording


def _raised(name: str, message: str) -> Exception:
    """An error by its recorded class; a class that is not ours becomes a `ModelError`."""
    kind = getattr(errors, name, errors.ModelError)
    return kind(message) if issubclass(kind, MetaRagError) else errors.ModelError(message)
