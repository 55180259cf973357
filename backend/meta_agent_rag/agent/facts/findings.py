"""The input of the diagnosis in code: the facts, the vote, and what may still be searched."""

from dataclasses import dataclass

from ...text.normalise import normalised
from ..derivation import Derivation, Fact
from ..routes import Vote
from ..routes.vote import upholds
from ..state import Draft, Signals


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A draft that the vote did not elect, and everything known about it.

    `searched` holds the questions of the facts that were already searched; `may_search` says whether a search is
    possible at all, `may_remember` whether answers from memory are allowed. `tried` holds the earlier diagnoses: a
    deficit, and the question of the fact that it concerned.
    """

    question: str
    draft: Draft
    signals: Signals
    derivation: Derivation
    vote: Vote
    searched: frozenset[str]
    remembered: frozenset[str]
    tried: frozenset[tuple[str, str | None]]
    may_search: bool
    may_remember: bool

    @property
    def to_search(self) -> Fact | None:
        """The first open fact that has not been searched yet."""
        if not self.may_search:
            return None
        return next((fact for fact in self.derivation.open_facts if fact.asked not in self.searched), None)

    @property
    def to_remember(self) -> Fact | None:
        """The first open fact not yet recalled from memory, once nothing is left to search."""
        if not self.may_remember or self.to_search is not None:
            return None
        return next((fact for fact in self.derivation.open_facts if fact.asked not in self.remembered), None)

    @property
    def unsettled(self) -> Fact | None:
        """The next open fact to search or recall, if any."""
        return self.to_search or self.to_remember

    @property
    def last_fact(self) -> Fact | None:
        """The fact at the end of the only chain, if the passages give it: its value is the derived answer."""
        plan = self.derivation.plan
        if plan is None or len(plan.chains) != 1 or not self.derivation.facts:
            return None
        last = self.derivation.facts[-1]
        whole = last.index == len(plan.chains[0].facts) - 1
        return last if whole and last.open is None and not last.from_memory else None

    @property
    def follows(self) -> bool:
        """Did the vote elect what follows from the facts?"""
        return bool(self.derivation.answer) and upholds(self.vote, self.derivation.answer)

    @property
    def names_an_earlier_fact(self) -> Fact | None:
        """The fact at which the draft stopped: its answer is the value of an earlier hop."""
        said = normalised(self.draft.short_answer)
        return next((fact for fact in self.derivation.facts[:-1] if said and normalised(fact.value) == said), None)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Why a deficit applies, in one sentence, and the fact concerned; `None` if it concerns the answer as a whole."""

    why: str
    fact: Fact | None = None

    @property
    def about(self) -> str | None:
        """The question of the fact."""
        return self.fact.asked if self.fact is not None else None
