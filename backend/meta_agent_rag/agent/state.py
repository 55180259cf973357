"""The loop's data: immutable values, and the state that LangGraph carries between nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, cast, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from ..llm.ledger import LedgerRow
from ..retrieval.passage import Found
from ..retrieval.screening import Dropped
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
    # no loop
    "single_pass",
]
"""Why no further round was started."""
MethodStop = NewType("MethodStop", str)
"""Why another method of the benchmark ended, in a name of its own."""
RepairKind = Literal["rewrite", "look_up", "reread", "conclude"]
NO_DEFICIT = "none"
VERDICTS = ("yes", "no")
"""Short answers that do not occur in a passage as such."""


def _read_as(*names: str) -> Any:
    """The names of a field in stored rows: the current one, then older ones."""
    return Field(validation_alias=AliasChoices(*names))


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A written answer. `answer` is a sentence or two with citations, `short_answer` the bare fact.

    `confidence` (0..1) is the writer's own estimate; `logprob` the mean log-probability of the short
    answer's tokens (<= 0); `None` if missing. `route` is the one that gave the answer: a repair may use
    the answer of the derivation, or of another elected route.
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
    """The monitor's own answer over the evidence `packed_ids`; if there is none, `error` says why.

    `logprob` is the mean log-probability of its short answer's tokens, if the endpoint reported it.
    """

    short_answer: str
    steps: tuple[str, ...]
    packed_ids: tuple[str, ...]
    error: str | None = None
    logprob: float | None = None


@dataclass(frozen=True, kw_only=True)
class Signals:
    """The monitor's measurements on a draft.

    For the short answers of draft and second answer, `similarity` is the cosine (-1..1), `agreement` whether they are
    the same once normalised (one may contain the other), `overlap` the F1 of their words (0..1). `verbatim` is
    the share of quotes found in the evidence; `coverage` the share of the question's content words that the
    verbatim quotes and their passages' titles contain; `quoted` whether the short answer occurs in one of
    them (a yes or no does not); `of_kind` whether it is of the kind that the question asks for, if its wording
    says so. `confidence` and `logprob` are the draft's, `reference_logprob` is the second answer's.

    With MONITOR_POLICY=vote: `share` (0..1) is the part of the vote that supports the draft, `voters` the number of
    routes with an answer that counts, `derived` whether the derivation gives the same answer, `compared` whether it
    does so by comparing values, `in_evidence` whether the short answer occurs in the evidence, `open_facts` the number
    of facts without a reliable value, `taken_over` whether the draft is the answer of another route. `None` means not
    measured.
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
    compared: bool | None = None

    @property
    def misses(self) -> bool:
        """Whether the draft abstains, or gives a different kind of answer than the question asks for."""
        return self.abstained or self.of_kind is False


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The deficit that explains an inadequate draft, according to the facts, the critic, or the heuristic rules.

    A deficit's `detect` gives `rationale`, one clause, and what it knows besides; its name is added. `about` is the
    question of the fact that it concerns; `None` if it concerns the answer as a whole. The loop ends when drafts
    repeat each other, unless a diagnosis `insists` on its repair.
    """

    deficit: str = ""
    rationale: str
    error_type: str = "none"
    suggestion: str = ""
    suggested_queries: tuple[str, ...] = ()
    source: Literal["facts", "critic", "heuristic"] = "facts"
    critic_error: str | None = None
    about: str | None = None
    insists: bool = False


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What a deficit's `repair` does about a draft: at most one search, then one way to the next draft.

    - `search`: queries for new passages, which are appended to the others; those asked before are left out. `None`
      stands for what the diagnosis suggests, if the deficit `retrieves`.
    - `drop`: ids of passages that no later prompt shows.
    - `adopt`: a short answer to take over, without a call.
    - `ask`: the question of a fact. A fact of the derivation is looked up again, and the answer derived again; the
      value of any other becomes the answer.
    - `directive`, `mode`: how to write a new draft, if nothing is adopted or asked, and whether a fact is asked from
      the passages or from memory; the deficit's own unless given.
    - `cited`: write it from those passages alone that the draft or the derivation cites.
    - `because`: a sentence for the reader, which the new answer ends with.
    - `obsolete`: names of the routes whose ballots so far no longer count; `quoted_draft` and `derivation` are such.
    """

    search: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    adopt: str | None = None
    ask: str | None = None
    directive: str = ""
    mode: AnswerMode | None = None
    cited: bool = False
    because: str = ""
    obsolete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("search", "drop", "obsolete"):
            value: object = getattr(self, name)
            if value is not None and not (isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)):
                raise TypeError(f"the {name!r} of a repair must be a tuple of texts, not {value!r}")
        for name in ("adopt", "ask"):
            if not isinstance(value := getattr(self, name), str | None):
                raise TypeError(f"the {name!r} of a repair must be a text, not {value!r}")
        if self.mode not in (None, *get_args(AnswerMode)):
            raise ValueError(f"a repair has no mode {self.mode!r}; choose one of {', '.join(get_args(AnswerMode))}")

    @property
    def kind(self) -> RepairKind:
        """How the next draft comes about."""
        if self.adopt is not None:
            return "conclude"
        return "look_up" if self.ask is not None else "reread" if self.cited else "rewrite"


@dataclass(frozen=True, kw_only=True)
class RepairPlan:
    """What the next write must do about a deficit, and what was looked up for it; see `Repair`.

    `repair` is the kind of repair, `about` the question of the fact that the diagnosis is about. `drawn` is the number
    of routes that had been asked before.
    """

    deficit: str
    directive: str
    answer_mode: AnswerMode
    suggestion: str
    queries: tuple[str, ...] = ()
    repair: RepairKind = "rewrite"
    about: str | None = None
    ask: str | None = None
    adopt: str | None = None
    because: str = ""
    obsolete: tuple[str, ...] = ()
    drawn: int = 0


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Which passages a prompt contained: whole, shortened to whole sentences, or left out; and its tokens."""

    packed_ids: tuple[str, ...] = ()
    shortened_ids: tuple[str, ...] = ()
    left_out_ids: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Round:
    """One complete pass through write and diagnose; the history is a tuple of these.

    `plan` is what led to this draft (`None` for the first); `diagnosis` the fault found in it
    (`None` if the critic was not asked). `calls` counts model calls, `cost_usd` is `None` if a
    price is unknown, `seconds` is the duration of the diagnosis. `p_correct` (0..1) is the probability
    of being correct according to a calibrated monitor, else `None`; older rows call it `chance`, and the second
    answer `reference`. `derivation` and `vote` are set with MONITOR_POLICY=vote. `evidence_ids` is the evidence of the
    draft, `searched_ids` what the `searches` between later calls have added, for facts and for routes.
    """

    index: int
    draft: Draft
    packing: Packing
    evidence_ids: tuple[str, ...]
    plan: RepairPlan | None = None
    second_answer: Annotated[SecondAnswer | None, _read_as("second_answer", "reference")] = None
    signals: Signals | None = None
    satisfied: bool = False
    p_correct: Annotated[float | None, _read_as("p_correct", "chance")] = None
    derivation: Derivation | None = None
    searches: tuple[str, ...] = ()
    searched_ids: tuple[str, ...] = ()
    vote: Vote | None = None
    diagnosis: Diagnosis | None = None
    calls: int = 0
    cost_usd: Decimal | None = None
    seconds: float = 0.0


def add_found(known: Sequence[Found], new: Sequence[Found]) -> tuple[Found, ...]:
    """New evidence after the old, without duplicates, so that the prompt's prefix stays unchanged."""
    ids = {found.passage.id for found in known}
    fresh = {found.passage.id: found for found in reversed(new) if found.passage.id not in ids}
    return (*known, *(found for found in new if fresh.get(found.passage.id) is found))


def add_new(known: Sequence[Dropped], new: Sequence[Dropped]) -> tuple[Dropped, ...]:
    """Append what is not there yet."""
    return tuple(dict.fromkeys((*known, *new)))


def add_all(known: Sequence[object], new: Sequence[object]) -> tuple[object, ...]:
    """Append."""
    return (*known, *new)


class State(TypedDict, total=False):
    """The graph's state; a node returns a partial update, merged by each key's reducer.

    `cut` is the limit that a vote has met: only repairs that cost nothing follow. Once the loop has ended, it has
    `answer`, `short_answer` and `chosen`, the index of the round that they come from.
    """

    question: str
    evidence: Annotated[tuple[Found, ...], add_found]
    set_aside: Annotated[tuple[str, ...], add_all]
    dropped: Annotated[tuple[Dropped, ...], add_new]
    queries: Annotated[tuple[str, ...], add_all]
    plan: RepairPlan | None
    planned: Planned
    draft: Draft
    packing: Packing
    rounds: Annotated[tuple[Round, ...], add_all]
    derivation: Derivation
    routes: Annotated[tuple[RouteAnswer, ...], add_all]
    calls: Annotated[tuple[LedgerRow, ...], add_all]
    cut: StopReason | None
    stop_reason: StopReason
    answer: str
    short_answer: str
    chosen: int


Update = Mapping[str, object]


def shown(state: State) -> tuple[Found, ...]:
    """The evidence, without the passages that a repair has set aside."""
    aside = state.get("set_aside", ())
    return tuple(found for found in state.get("evidence", ()) if found.passage.id not in aside)


def afresh(update: Update) -> Update:
    """An update that replaces all that an earlier question has left in the state."""
    from langgraph.types import Overwrite

    hints = get_type_hints(State, include_extras=True)
    added = {name for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {
        name: Overwrite(update.get(name, ())) if name in added else update.get(name)
        for name in hints
        if name != "question"
    }


def restored(state: State) -> State:
    """The state with tuples where a checkpointer, which knows lists alone, has put lists."""
    return cast(State, {name: _with_tuples(value) for name, value in state.items()})


def _with_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_with_tuples(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: new
            for field in fields(value)
            if (new := _with_tuples(old := getattr(value, field.name))) is not old and new != old
        }
        return replace(value, **changed) if changed else value
    return value
