"""An answer from documents as it may be shown: checked against the passages that the writer saw, or refused.

The rules are those of the package `grounding`; a model is asked only where CLAIM_CHECK=critic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import BudgetError, DataFileError, ModelError
from ..grounding.abstention import Reason, is_abstention, refusal
from ..grounding.citation import Citation
from ..grounding.citations import cite, removed_marks
from ..grounding.claims import Claim, claims
from ..grounding.confidence import Confidence, confidence
from ..grounding.leakage import leaks, phrases_with
from ..grounding.links import without_links
from ..grounding.quotes import is_verbatim
from ..grounding.styles import Style, chosen
from ..grounding.support import (
    Cosine,
    Support,
    holds_the_answer,
    on_the_question,
    supports,
    with_quoted_passages_cited,
    with_unsupported_marked,
    without_unsupported,
)
from ..llm.ledger import LedgerRow, Totals, total
from ..retrieval import hybrid
from ..retrieval.batching import AsyncEncoder
from ..retrieval.passage import Found, Passage
from ..settings import Settings
from .engine import Answer, Engine
from .prompting.messages import messages
from .prompting.packing import pack
from .prompting.replies import ClaimsReply
from .state import Round


@dataclass(frozen=True, kw_only=True)
class GroundedAnswer:
    """What may be shown of an answer, and what it rests on.

    `text` has its citations written out in the style of CITATION_STYLE; where `refused` names a reason it is
    a text that says what to try, and nothing is cited. `claims` come with their support; `removed` counts the
    citations of passages that were not in the prompt; `leaks` are the phrases that stepped outside the
    documents. `answer` has the whole history, and `calls` all that was spent.
    """

    question: str
    text: str
    short_answer: str
    refused: Reason | None
    citations: tuple[Citation, ...]
    quotes: tuple[str, ...]
    claims: tuple[tuple[Claim, Support], ...]
    removed: int
    leaks: tuple[str, ...]
    confidence: Confidence | None
    answer: Answer
    calls: tuple[LedgerRow, ...]

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost of this question, its checks included."""
        return total(self.calls)


@dataclass(frozen=True, kw_only=True)
class Checks:
    """How answers over one corpus are checked: what the settings name, read once."""

    settings: Settings
    style: Style
    leakage_phrases: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings, corpus: str) -> "Checks":
        """The checks for a corpus. Raises `UnknownNameError` for the style, `DataFileError` for its phrases."""
        return cls(
            settings=settings,
            style=chosen(settings.citation_style),
            leakage_phrases=phrases_with(_own_phrases(settings.leakage_dir, corpus)),
        )


def _own_phrases(folder: Path | None, corpus: str) -> Path | None:
    if folder is None:
        return None
    if not folder.is_dir():
        raise DataFileError(f"LEAKAGE_DIR {str(folder)!r} is not a folder; name one with CORPUS.yaml files.")
    own = folder / f"{corpus}.yaml"
    return own if own.is_file() else None


async def checked(
    engine: Engine, answer: Answer, checks: Checks, *, question_id: str = "", deadline: float | None = None
) -> GroundedAnswer:
    """The answer as it may be shown.

    Where CLAIM_CHECK=critic a model is asked till the deadline (a `time.monotonic` moment); raises only what must
    stop the run.
    """
    round_ = answer.rounds[answer.chosen]
    passages = _packed(answer, round_)
    if reason := _nothing_said(answer, round_, passages):
        return _refused(answer, reason)
    texts = [found.passage.searchable() for found in passages]
    quotes = tuple(quote for quote in round_.draft.quotes if is_verbatim(quote, texts))
    if not quotes:
        return _refused(answer, "invented_quotes")
    said, short = (without_links(part, texts) for part in (answer.text, answer.short_answer))
    if stepped := leaks(said, quotes, checks.leakage_phrases):
        return _refused(answer, "leakage", leaks=stepped)
    text = with_quoted_passages_cited(said, passages, quotes)
    stated = claims(text, texts)
    source = _quoted_or_cited(texts, quotes, stated)
    support = supports(stated, passages, await _cosine(engine.monitor_encoder, stated, passages))
    support = on_the_question(answer.question, stated, support, source)
    calls = answer.calls
    if checks.settings.claim_check == "critic" and any(found.supported for found in support):
        support, asked = await _refuted(engine, answer, stated, support, question_id=question_id, deadline=deadline)
        calls = (*calls, *asked)
    borne_out = any(found.supported for found in support)
    only_links = bool(answer.short_answer.strip() and not short.strip())
    if not borne_out or only_links or not holds_the_answer(answer.question, short, stated, support, source):
        return _refused(answer, "unsupported", claims=_paired(stated, support), calls=calls)
    cited = [number for claim in stated for number in claim.marks]
    sure = confidence([hybrid.confidence(found) for found in passages], round_.draft.confidence, cited)
    if sure.score < checks.settings.confidence_floor:
        return _refused(answer, "not_covered", claims=_paired(stated, support), calls=calls, sure=sure)
    keep = without_unsupported if checks.settings.unsupported_claims == "drop" else with_unsupported_marked
    shown = cite(keep(text, stated, support), passages, quotes, checks.style)
    return GroundedAnswer(
        question=answer.question,
        text=shown.text,
        short_answer=short,
        refused=None,
        citations=shown.citations,
        quotes=quotes,
        claims=_paired(stated, support),
        removed=removed_marks(said, passages),
        leaks=(),
        confidence=sure,
        answer=answer,
        calls=calls,
    )


def _packed(answer: Answer, round_: Round) -> tuple[Found, ...]:
    """The passages of the round's prompt in their order: number 1 comes first."""
    by_id = {found.passage.id: found for found in answer.evidence}
    return tuple(by_id[identity] for identity in round_.packing.packed_ids)


def _nothing_said(answer: Answer, round_: Round, passages: Sequence[Found]) -> Reason | None:
    if answer.stop_reason == "no_evidence":
        return "no_evidence"
    return "not_found" if round_.draft.abstained or is_abstention(answer.text) or not passages else None


def _quoted_or_cited(texts: Sequence[str], quotes: Sequence[str], stated: Sequence[Claim]) -> str:
    cited = {number for claim in stated for number in claim.marks}
    quoted = (
        number in cited or any(is_verbatim(quote, [text]) for quote in quotes) for number, text in enumerate(texts, 1)
    )
    return "\n".join(text for text, taken in zip(texts, quoted, strict=True) if taken)


def _paired(stated: Sequence[Claim], support: Sequence[Support]) -> tuple[tuple[Claim, Support], ...]:
    return tuple(zip(stated, support, strict=True))


async def _cosine(encoder: AsyncEncoder, stated: Sequence[Claim], passages: Sequence[Found]) -> Cosine:
    """The cosine of a claim and a passage that the answer cites, from vectors computed in one batch."""
    numbers = {number for claim in stated for number in claim.marks}
    cited = [found.passage.searchable() for number, found in enumerate(passages, start=1) if number in numbers]
    wanted = list(dict.fromkeys([*(claim.text for claim in stated), *cited])) if cited else []
    vectors = dict(zip(wanted, await encoder.passages(wanted), strict=True)) if wanted else {}

    def cosine(claim: Claim, passage: Passage) -> float:
        return float(vectors[claim.text] @ vectors[passage.searchable()])

    return cosine


def _refused(
    answer: Answer,
    reason: Reason,
    *,
    claims: tuple[tuple[Claim, Support], ...] = (),
    leaks: tuple[str, ...] = (),
    calls: tuple[LedgerRow, ...] | None = None,
    sure: Confidence | None = None,
) -> GroundedAnswer:
    return GroundedAnswer(
        question=answer.question,
        text=refusal(reason),
        short_answer="",
        refused=reason,
        citations=(),
        quotes=(),
        claims=claims,
        removed=0,
        leaks=leaks,
        confidence=sure,
        answer=answer,
        calls=answer.calls if calls is None else calls,
    )


async def _refuted(
    engine: Engine,
    answer: Answer,
    stated: Sequence[Claim],
    support: Sequence[Support],
    *,
    question_id: str = "",
    deadline: float | None = None,
) -> tuple[tuple[Support, ...], tuple[LedgerRow, ...]]:
    """The support that remains once the critic has looked at the claims, in one call; and what it cost.

    It refutes what the rules let pass, and never the other way round. Where the call fails, or is not done by
    the deadline (a `time.monotonic` moment), the rules' verdict stands. Raises what must stop the run.
    """
    session = engine.model.session(question_id, method="check_claims", deadline=deadline)
    listed = "\n".join(f"{number}. {claim.text}" for number, claim in enumerate(stated, start=1))
    packed = pack(answer.evidence, engine.model.evidence_tokens())
    prompt = messages(engine.settings, "check_claims", answer.question, packed, system="grounded", claims=listed)
    try:
        reply = await session.ainvoke("check_claims", prompt, ClaimsReply)
    except BudgetError:
        return tuple(support), tuple(session.rows)
    except ModelError as error:
        if error.stops_run:
            raise
        return tuple(support), tuple(session.rows)
    checked = (
        replace(found, supported=found.supported and number not in reply.unsupported)
        for number, found in enumerate(support, start=1)
    )
    return tuple(checked), tuple(session.rows)
