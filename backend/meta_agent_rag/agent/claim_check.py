"""Asks the critic, in one call, about claims that the rules leave open, and accepts only verdicts that it can check."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import BudgetError, ModelError
from ..grounding.abstention import is_abstention, states_unknown
from ..grounding.claims import Claim
from ..grounding.relevance import holds_the_answer, is_connected, is_settled, on_the_question
from ..grounding.support.confirmed import confirmed
from ..grounding.support.neighbours import neighbours
from ..grounding.support.rules import cited_or_quoted, language_of_answer, read_claim
from ..grounding.support.sources import Source, read_sources
from ..grounding.support.statement import Statement, read
from ..grounding.support.verdict import Support
from ..llm.ledger import LedgerRow
from ..prompts import phrase
from ..retrieval.passage import Found
from ..text.figures.figure import stands_in
from .engine import Engine
from .prompting import CalculatedReply, CalculatedVerdict, ClaimsReply, ClaimVerdict, messages, pack

_CONTROL = 0
"""The number of a claim that no passage supports; a critic that accepts it is not believed."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The claims after the critic's verdict: their support, in order, and whether they answer the question.

    `answers` is `None` if the critic was not asked, failed, or is not believed. `calls` counts the model calls made.
    """

    support: tuple[Support, ...]
    answers: bool | None = None
    calls: tuple[LedgerRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """The claims of one answer, the rules' verdict on each, its prompt's passages, and its writer's verbatim quotes.

    `deadline` is a `time.monotonic` timestamp.
    """

    engine: Engine
    question: str
    claims: Sequence[Claim]
    ruled: tuple[Support, ...]
    passages: Sequence[Found]
    quotes: Sequence[str]
    question_id: str = ""
    deadline: float | None = None

    async def judged(self, how: str) -> Judged:
        """The support of the claims by `rules`, by the `critic`, or by `both`: the critic judges what rules leave open.

        The critic is also asked whether the answer addresses the question if its wording does not settle this. Raises
        only errors that must stop the run.
        """
        stated = on_the_question(self.question, self.claims, self.ruled, self._statements)
        if how == "rules":
            return Judged(support=stated)
        settled = {"supported", "refuted"} if how == "both" else {"refuted"}
        numbered = list(enumerate(stated, start=1))
        doubted = [number for number, found in numbered if found.standing not in settled or _is_beside(found)]
        if not doubted and is_settled(self.question, self.claims, stated, self._titles):
            return Judged(support=stated)
        listed = doubted or [number for number, found in numbered if found.supported]
        return await self._asked(stated, doubted, listed, every=how == "critic") if listed else Judged(support=stated)

    def gives(self, short_answer: str, judged: Judged) -> bool:
        """Does a supported claim give the short answer, or say that it is not known if that is the answer?"""
        if is_abstention(short_answer):
            paired = zip(self.claims, judged.support, strict=True)
            return states_unknown(claim.text for claim, found in paired if found.supported)
        return holds_the_answer(
            self.question, short_answer, self.claims, judged.support, self._statements, answers=judged.answers
        )

    def is_connected(self, judged: Judged) -> bool:
        """Are the passages behind the supported claims connected with the question?"""
        shown = [found for found in judged.support if found.supported]
        cited = {number for found in shown for number in (found.number, *found.also) if number is not None}
        return is_connected(self.question, cited, [found.passage for found in self.passages])

    @cached_property
    def _elsewhere(self) -> tuple[int, ...]:
        return cited_or_quoted(self.claims, self.passages, self.quotes)

    @cached_property
    def _statements(self) -> tuple[Statement, ...]:
        """The sentences and titles of the passages that are quoted or cited."""
        sources = self._sources(self._elsewhere)
        return tuple(statement for source in sources for statement in (source.title, *source.statements))

    @cached_property
    def _titles(self) -> tuple[Statement, ...]:
        """Those of the passages that are quoted or cited."""
        return tuple(source.title for source in self._sources(self._elsewhere))

    def _cited(self, claim: Claim) -> tuple[int, ...]:
        return claim.marks or self._elsewhere

    def _beside(self, claim: Claim) -> tuple[int, ...]:
        return neighbours(claim.text, self._cited(claim), [found.passage for found in self.passages])

    def _sources(self, numbers: Sequence[int]) -> tuple[Source, ...]:
        return read_sources([found.passage for found in self.passages], numbers)

    async def _asked(
        self, support: tuple[Support, ...], doubted: Sequence[int], listed: Sequence[int], *, every: bool
    ) -> Judged:
        """The support once the critic has examined the doubted claims.

        A yes counts if the words quoted for it occur in the passages and no veto fires. If the call fails, misses the
        deadline, or accepts the control claim, the rules' verdict is kept; the same applies to a claim that the critic
        does not mention, unless it judges `every` claim.
        """
        model = self.engine.model.session(self.question_id, method="check_claims", deadline=self.deadline)
        packed = pack(self.passages, self.engine.model.evidence_tokens(), marked=True)
        calculated = any(self._has_figures_of_its_own(self.claims[number - 1]) for number in listed)
        prompt = messages(
            self.engine.settings,
            "check_claims",
            self.question,
            packed,
            system="grounded",
            claims=self._shown(listed),
            calculation=phrase("calculation") if calculated else "",
        )
        schema: type[ClaimsReply | CalculatedReply] = CalculatedReply if calculated else ClaimsReply
        try:
            reply = await model.ainvoke("check_claims", prompt, schema)
        except BudgetError:
            return Judged(support=support, calls=tuple(model.rows))
        except ModelError as error:
            if error.stops_run:
                raise
            return Judged(support=support, calls=tuple(model.rows))
        verdicts = {verdict.claim: verdict if verdict.supported else None for verdict in reply.claims}
        if verdicts.get(_CONTROL) is not None:
            return Judged(support=support, calls=tuple(model.rows))
        after = tuple(
            self._confirmed(number, found, verdicts.get(number))
            if number in doubted and (every or number in verdicts)
            else found
            for number, found in enumerate(support, start=1)
        )
        return Judged(support=after, answers=reply.answers_question, calls=tuple(model.rows))

    def _shown(self, listed: Sequence[int]) -> str:
        rows = [f"{_CONTROL}. {phrase('control_claim')}"]
        for number in listed:
            claim = self.claims[number - 1]
            cited = ", ".join(map(str, (*self._cited(claim), *self._beside(claim))))
            rows.append(f"{number}. {claim.text} ({phrase('passage')} {cited})")
        return "\n".join(rows)

    def _has_figures_of_its_own(self, claim: Claim) -> bool:
        """Does it have figures that no passage that it may rely on gives?"""
        sources = self._sources((*self._cited(claim), *self._beside(claim)))
        given = [figure for one in sources for said in (one.title, *one.statements) for figure in said.figures]
        asked = read(self.question, language_of_answer(self.question, self.claims))
        stated = read_claim(claim, language_of_answer(self.question, self.claims), sources)
        known = [*given, *asked.figures]
        measured = [one for one in known if one.unit]  # a bare 10 elsewhere is no "10 hours"
        return any(not stands_in(figure, measured if figure.unit else known) for figure in stated.figures)

    def _confirmed(self, number: int, support: Support, verdict: ClaimVerdict | CalculatedVerdict | None) -> Support:
        if verdict is None:
            return replace(support, supported=False, fault="the critic does not support it")
        claim = self.claims[number - 1]
        language = language_of_answer(self.question, self.claims)
        sources, linked = self._sources(self._cited(claim)), self._sources(self._beside(claim))
        known = {source.number for source in (*sources, *linked)}
        others = self._sources([number for number in range(1, len(self.passages) + 1) if number not in known])
        statement = read_claim(claim, language, sources)
        asked = read(self.question, language)
        return confirmed(
            support,
            statement,
            verdict.quotes,
            sources,
            asked,
            linked=linked,
            others=others,
            quotes=self.quotes,
            calculation=verdict.calculation if isinstance(verdict, CalculatedVerdict) else "",
        )


def _is_beside(found: Support) -> bool:
    """Does a passage say it, but not of what the question names?"""
    return found.standing == "supported" and not found.supported
