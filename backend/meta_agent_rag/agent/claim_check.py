"""Asks the critic whether the passages suffice, then in one call about all claims of an answer.

Only what code can check of its reply is believed.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..errors import BudgetError, ModelError
from ..grounding.confidence import is_covered
from ..grounding.exact import Source, Support, lacking, said_exactly
from ..grounding.links import without_links
from ..grounding.marks import Claim
from ..grounding.quotes import as_written, is_verbatim
from ..llm.ledger import LedgerRow
from ..llm.messages import Reply, Sampling
from ..prompts import phrase
from ..retrieval.passage import Found
from .engine import Engine
from .prompting import ClaimsReply, ClaimVerdict, SufficientReply, messages, pack

_CONTROL = 0
"""The number of a claim that no passage supports; a critic that accepts it is not believed."""
_LONGEST_REASON = 200
_SURE = 0.99


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The support of each claim, in order, and what the critic says of the answer as a whole.

    `answers` says whether the claims address the question; `sufficient` is the probability (0..1) that the passages
    answer it, 0 or 1 without log-probabilities. Both are `None` if the critic was not asked, failed, or is not
    believed; then `support` is what code alone decides. `calls` counts the model calls made.
    """

    support: tuple[Support, ...]
    answers: bool | None = None
    sufficient: float | None = None
    calls: tuple[LedgerRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """The claims of one answer, the passages of its prompt, and its writer's verbatim quotes.

    `deadline` is a `time.monotonic` timestamp.
    """

    engine: Engine
    question: str
    claims: Sequence[Claim]
    passages: Sequence[Found]
    quotes: Sequence[str]
    question_id: str = ""
    deadline: float | None = None

    async def judged(self, how: str) -> Judged:
        """The support of the claims by the `critic`, or as code decides it (`exact`).

        Nothing more is asked if the passages do not suffice. If a call fails or misses the deadline, or if the critic
        accepts the control claim, code decides. Raises only errors that must stop the run.
        """
        if how == "exact" or not self.claims:
            return Judged(support=self.exactly())
        model = self.engine.model.session(self.question_id, method="check_claims", deadline=self.deadline)
        asked = partial(
            messages,
            self.engine.settings,
            question=self.question,
            packed=pack(self.passages, self.engine.model.evidence_tokens(), marked=True),
            system="grounded",
        )
        sufficient: float | None = None
        try:
            if self.engine.model.gives_logprobs("sufficiency"):
                sampling = Sampling(logprobs=True)
                alone, said = await model.aparse(
                    "sufficiency", asked("sufficiency"), SufficientReply, sampling=sampling
                )
                sufficient = _probability_of_yes(alone.sufficient, said)
                if not is_covered(sufficient):
                    return Judged(support=self.exactly(), sufficient=sufficient, calls=tuple(model.rows))
            reply = await model.ainvoke("check_claims", asked("check_claims", claims=self._listed()), ClaimsReply)
        except BudgetError:
            return Judged(support=self.exactly(), sufficient=sufficient, calls=tuple(model.rows))
        except ModelError as error:
            if error.stops_run:
                raise
            return Judged(support=self.exactly(), sufficient=sufficient, calls=tuple(model.rows))
        verdicts = {verdict.claim: verdict for verdict in reply.claims}
        if any(verdict.claim == _CONTROL and verdict.verdict == "supported" for verdict in reply.claims):
            return Judged(support=self.exactly(), sufficient=sufficient, calls=tuple(model.rows))
        support = tuple(self._confirmed(claim, verdicts.get(n)) for n, claim in enumerate(self.claims, start=1))
        return Judged(
            support=support,
            answers=reply.answers_question,
            sufficient=float(reply.sufficient) if sufficient is None else sufficient,
            calls=tuple(model.rows),
        )

    def exactly(self) -> tuple[Support, ...]:
        """What code decides about each claim, by the passages that it cites, then by those that are quoted."""
        return tuple(said_exactly(one.text, self._sources(self._cited(one)), self.question) for one in self.claims)

    def _cited(self, claim: Claim) -> list[int]:
        quoted = (number for number, text in enumerate(self._texts(), start=1) if _holds_any(text, self.quotes))
        return list(dict.fromkeys((*claim.marks, *quoted)))

    def _texts(self) -> list[str]:
        return [found.passage.searchable() for found in self.passages]

    def _sources(self, numbers: Iterable[int]) -> list[Source]:
        known = (number for number in numbers if 1 <= number <= len(self.passages))
        return [Source(number=number, passage=self.passages[number - 1].passage) for number in known]

    def _listed(self) -> str:
        rows = [f"{_CONTROL}. {phrase('control_claim')}"]
        for number, claim in enumerate(self.claims, start=1):
            cited = ", ".join(map(str, self._cited(claim)))
            rows.append(f"{number}. {claim.text}" + (f" ({phrase('passage')} {cited})" if cited else ""))
        return "\n".join(rows)

    def _confirmed(self, claim: Claim, verdict: ClaimVerdict | None) -> Support:
        """The support of a claim that the critic accepts, if its words are the passages' and no figure is missing."""
        if verdict is None or verdict.verdict != "supported":
            said = "" if verdict is None else without_links(verdict.reason, self._texts())[:_LONGEST_REASON]
            return Support(supported=False, fault=said or "the passages do not say it")
        texts, bodies = self._texts(), [found.passage.text for found in self.passages]
        copied = tuple(dict.fromkeys(part for quote in verdict.words for part in as_written(quote, texts, bodies)))
        words = copied or tuple(quote for quote in self.quotes if _is_cited(quote, claim, texts))
        if not words:
            return Support(supported=False, fault="none of the words named for it occur in the passages")
        holding = [number for number, text in enumerate(texts, start=1) if _holds_any(text, words)]
        sources = self._sources(dict.fromkeys((*claim.marks, *holding)))
        missing, steps = lacking(claim.text, sources, self.question, verdict.calculation)
        first = next((number for number in claim.marks if number in holding), holding[0])
        support = Support(
            supported=not missing,
            number=first,
            passage_id=self.passages[first - 1].passage.id,
            also=_also(first, words, texts),
            words=words,
            steps=tuple(steps),
            missing=tuple(missing),
        )
        return support if not missing else replace(support, fault=f"the passages do not have {', '.join(missing)}")


def _holds_any(text: str, quotes: Iterable[str]) -> bool:
    return any(is_verbatim(quote, [text]) for quote in quotes)


def _is_cited(quote: str, claim: Claim, texts: Sequence[str]) -> bool:
    """Whether a quote occurs in a passage that the claim cites, or anywhere if it cites none."""
    own = [texts[number - 1] for number in claim.marks if 1 <= number <= len(texts)]
    return is_verbatim(quote, own or texts)


def _also(first: int, words: Iterable[str], texts: Sequence[str]) -> tuple[int, ...]:
    """Further passages that have words which the first lacks."""
    found: dict[int, None] = {}
    for part in words:
        holding = [number for number, text in enumerate(texts, start=1) if is_verbatim(part, [text])]
        if first not in holding and holding and not set(holding) & found.keys():
            found[holding[0]] = None
    return tuple(found)


def _probability_of_yes(sufficient: bool, reply: Reply) -> float:
    """The probability of the token with which the critic says whether the passages suffice; 0 or 1 if unknown."""
    tokens = reply.tokens or ()
    spelt = "".join(token for token, _ in tokens)
    key = spelt.find(json.dumps("sufficient"))
    start = -1 if key < 0 else spelt.find("true" if sufficient else "false", key)
    place = 0
    for token, logprob in tokens:
        place += len(token)
        if 0 <= start < place:
            said = min(math.exp(logprob), _SURE)
            return said if sufficient else 1.0 - said
    return float(sufficient)
