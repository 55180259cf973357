"""What the loop knows: immutable values, and the state that LangGraph carries between nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict  # pydantic reads no other one before Python 3.12

from ..retrieval.passage import Found
from ..retrieval.screening.guardrails import Dropped
from .derivation import Derivation, Planned
from .routes import DRAFT, RouteAnswer, Vote

AnswerMode = Literal["evidence", "memory", "evidence_and_memory"]
StopReason = Literal[
    # the loop
    "satisfied",
    "critic_satisfied",
    "converged",
    "oscillating",
    "max_rounds",
    "upheld",
    "no_gain",
    "no_evidence",
    "not_in_evidence",
    "search_failed",
    "write_failed",
    # limits (`errors.BudgetError`)
    "budget",
    "cost_limit",
    "deadline",
    # the benchmark's baselines
    "single_pass",
    "majority",
    "concluded",
    "finished",
    "max_passages",
    "max_steps",
    "max_trials",
    "no_follow_up",
    "no_progress",
    "nothing_new",
    "unreadable_step",
]
"""Why no further round was begun."""
Repair = Literal["rewrite", "look_up", "reread", "conclude"]
NO_DEFICIT = "none"
VERDICTS = ("yes", "no")
"""Short answers that no passage holds as such."""


def _read_as(*names: str) -> Any:
    """The names of a field in stored rows: today's, then older ones."""
    return Field(validation_alias=AliasChoices(*names))


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A written answer. `answer` is a sentence or two with citations, `short_answer` the bare fact.

    `confidence` (0..1) is what the writer said of itself; `logprob` the mean log-probability of the short
    answer's tokens (<= 0). `None` where there is none. `route` is the one that gave the answer: a repair may take
    over that of the derivation, or of another route that the vote elected.
    """

    answer: str
    short_answer: str
    quotes: tuple[str, ...] = ()
    abstained: bool = False
    confidence: float | None = None
    logprob: float | None = None
    route: str = DRAFT


@dataclass(frozen=True, kw_only=True)
class SecondAnswer:
    """The monitor's own answer over the evidence `packed_ids`; `error` says why there is none.

    `logprob` is the mean log-probability of its short answer's tokens, where the endpoint gave it.
    """

    short_answer: str
    steps: tuple[str, ...]
    packed_ids: tuple[str, ...]
    error: str | None = None
    logprob: float | None = None


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What the monitor measured on a draft.

    Of the short answers of draft and second answer, `similarity` is the cosine (-1..1), `agreement` whether they are
    the same once normalised (one may hold the other), `overlap` the F1 of their words (0..1). `verbatim` is
    the share of quotes found in the evidence; `coverage` the share of the question's content words that the
    verbatim quotes, with their passages' titles, hold; `quoted` whether the short answer stands in one of
    them (a yes or no does not); `of_kind` whether it is of the kind that the question asks for, where its words
    tell. `confidence` and `logprob` are the draft's, `reference_logprob` is the second answer's.

    Where MONITOR_POLICY is `vote`: `share` (0..1) is how much of the vote supports the draft, `voters` how many
    routes gave an answer that counts, `derived` whether the derivation gives the same answer, `in_evidence` whether
    the short answer occurs in the evidence, `open_facts` how many facts have no reliable value, `taken_over` whether
    the draft is the answer of another route. `None` means that there was nothing to measure.
    """

    similarity: float | None
    agreement: bool | None
    verbatim: float | None
    abstained: bool
    evidence_passages: int
    overlap: float | None = None
    coverage: float | None = None
    quoted: bool | None = None
    of_kind: bool | None = None
    confidence: float | None = None
    logprob: float | None = None
    reference_logprob: float | None = None
    share: float | None = None
    voters: int | None = None
    derived: bool | None = None
    in_evidence: bool | None = None
    open_facts: int | None = None
    taken_over: bool | None = None

    @property
    def misses(self) -> bool:
        """Does the draft abstain, or give another kind of answer than the question asks for?"""
        return self.abstained or self.of_kind is False


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Which deficit explains an inadequate draft, according to the facts, the critic, or the heuristic rules.

    `about` is the question of the fact that it concerns; `None` if it concerns the answer as a whole.
    """

    deficit: str
    rationale: str
    error_type: str
    suggestion: str
    suggested_queries: tuple[str, ...]
    source: Literal["facts", "critic", "heuristic"]
    critic_error: str | None = None
    about: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the next write is to do about a deficit, and what was looked up for it.

    `repair` is how: see `Deficit`. `about` is the question of the fact that it repairs.
    """

    deficit: str
    directive: str
    answer_mode: AnswerMode
    suggestion: str
    queries: tuple[str, ...] = ()
    repair: Repair = "rewrite"
    about: str | None = None


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Which passages a prompt held: whole, shortened to whole sentences, or left out; and its tokens."""

    packed_ids: tuple[str, ...] = ()
    shortened_ids: tuple[str, ...] = ()
    left_out_ids: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Round:
    """One pass through write and diagnose, complete; the whole history is a tuple of these.

    `plan` is what led to this draft (`None` for the first); `diagnosis` what was found wrong with it
    (`None` where the critic was not asked). `calls` counts model calls, `cost_usd` is `None` where a
    price is unknown, `seconds` is the time that the diagnosis took. `p_correct` (0..1) is the probability
    of being correct by a calibrated monitor, `None` under another; older rows call it `chance`, and the second
    answer `reference`. `derivation` and `vote` are there where MONITOR_POLICY is `vote`.
    """

    index: int
    draft: Draft
    packing: Packing
    evidence_ids: tuple[str, ...]
    plan: Plan | None = None
    second_answer: Annotated[SecondAnswer | None, _read_as("second_answer", "reference")] = None
    signals: Signals | None = None
    satisfied: bool = False
    p_correct: Annotated[float | None, _read_as("p_correct", "chance")] = None
    derivation: Derivation | None = None
    vote: Vote | None = None
    diagnosis: Diagnosis | None = None
    calls: int = 0
    cost_usd: Decimal | None = None
    seconds: float = 0.0


def add_found(known: Sequence[Found], new: Sequence[Found]) -> tuple[Found, ...]:
    """New evidence after the old, each passage once: the prompt's prefix stays as it was."""
    ids = {found.passage.id for found in known}
    fresh = {found.passage.id: found for found in reversed(new) if found.passage.id not in ids}
    return (*known, *(found for found in new if fresh.get(found.passage.id) is found))


def add_all(known: Sequence[object], new: Sequence[object]) -> tuple[object, ...]:
    """Append."""
    return (*known, *new)


class State(TypedDict, total=False):
    """The graph's state; a node returns a partial update, merged by each key's reducer."""

    question: str
    evidence: Annotated[tuple[Found, ...], add_found]
    dropped: Annotated[tuple[Dropped, ...], add_all]
    queries: Annotated[tuple[str, ...], add_all]
    plan: Plan | None
    planned: Planned
    draft: Draft
    packing: Packing
    rounds: Annotated[tuple[Round, ...], add_all]
    derivation: Derivation
    routes: Annotated[tuple[RouteAnswer, ...], add_all]
    stop_reason: StopReason


Update = Mapping[str, object]
