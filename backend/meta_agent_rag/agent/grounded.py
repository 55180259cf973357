"""The displayable form of an answer from documents: checked against the passages that the writer saw, or refused.

Code decides what it can decide exactly (the package `grounding`); the critic judges everything else (`claim_check`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..grounding.abstention import Reason, is_abstention, leaks, refusal, states_unknown
from ..grounding.answer_kind import kind_asked, of_kind
from ..grounding.citations import Citation, cite, marked, removed_marks
from ..grounding.confidence import Confidence, confidence, is_covered
from ..grounding.exact import Support
from ..grounding.links import without_links
from ..grounding.marks import Claim, claims, with_plain_marks
from ..grounding.quotes import as_written
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.local import own_model_file
from ..llm.providers import choose_provider
from ..llm.stages import serving, stage
from ..retrieval import hybrid
from ..retrieval.passage import Found
from ..settings import Settings
from ..text.dates import as_date
from ..text.normalise import normalised, tokens
from .claim_check import ClaimCheck, Judged
from .engine import Answer, Engine
from .routes import DERIVATION
from .state import Draft, Round
from .write import draft_of

_FEWEST_SENTENCES = 2


@dataclass(frozen=True, kw_only=True)
class GroundedAnswer:
    """The displayable part of an answer and its basis.

    `text` has its citations written out in the style of CITATION_STYLE; if `refused` gives a reason, it
    suggests what to try, and nothing is cited. `claims` come with their support; `removed` counts the
    citations of passages that were not in the prompt; `leaks` are the phrases that go beyond the
    documents. `answer` has the whole history, and `calls` all model calls. `sufficient` is the critic's probability
    (0..1) that the passages answer the question, if it was asked and is believed.
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
    sufficient: float | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """What screening left out of the evidence, as notes for the reader."""
        orders = dict.fromkeys(one for one in self.answer.dropped if one.is_order)
        return tuple(f"Left out of the evidence: {one.passage_id}, because {one.reason}." for one in orders)

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost of this question, its checks included."""
        return total(self.calls)


@dataclass(frozen=True, kw_only=True)
class Checks:
    """How answers are checked, read once from the settings."""

    settings: Settings
    claim_check: str

    @classmethod
    def of(cls, settings: Settings) -> "Checks":
        """The checks by these settings."""
        return cls(
            settings=settings,
            claim_check=settings.claim_check or _usual_check(settings),
        )


def _usual_check(settings: Settings) -> str:
    critic = serving(stage("check_claims", settings), settings, choose_provider(settings))
    return "exact" if critic.is_embedded and own_model_file(settings) is None else "critic"


async def checked(
    engine: Engine, answer: Answer, checks: Checks, *, question_id: str = "", deadline: float | None = None
) -> GroundedAnswer:
    """The displayable answer; with CLAIM_CHECK=critic, `claim_check` asks a model, until the deadline.

    If the passages do not support the writer's wording, an equal answer that the loop derived from facts is shown in
    its place, as far as code confirms it: it consists of the sentences that contain the facts. Raises only errors that
    must stop the run.
    """
    round_ = answer.rounds[answer.chosen]
    ask = partial(_checked, engine, answer, checks=checks, question_id=question_id, deadline=deadline)
    written = await ask(round_, round_.draft, how=checks.claim_check)
    derived = _derived(answer.question, round_) if written.refused in {"unsupported", "invented_quotes"} else None
    if derived is None:
        return written
    found = await ask(*derived, how="exact")
    return written if found.refused else replace(found, calls=written.calls)


def _derived(question: str, round_: Round) -> tuple[Round, Draft] | None:
    """The derivation as a draft, if it gives the same answer and has not been used yet, and a round that packs for it.

    Each of its facts must have a sentence in the prompt, or in what was searched since, and there must be several, so
    that more is shown than one look-up. A verdict or a choice must have been compared in code.
    """
    derivation, draft = round_.derivation, round_.draft
    if derivation is None or not derivation.stands or draft.route == DERIVATION:
        return None
    packed = tuple(dict.fromkeys((*round_.packing.packed_ids, *round_.searched_ids)))
    sentences = [fact.sentence for fact in derivation.facts if fact.passage_id in packed and fact.sentence]
    if len(sentences) < len(derivation.facts) or len(set(sentences)) < _FEWEST_SENTENCES:
        return None
    if kind_asked(question) in {"verdict", "choice"} and not derivation.compared:
        return None
    given, drafted = derivation.answer, draft.short_answer
    day = as_date(given)
    same = normalised(given) == normalised(drafted) or (day is not None and day == as_date(drafted))
    packing = replace(round_.packing, packed_ids=packed)
    return (replace(round_, packing=packing), draft_of(derivation, packed)) if same else None


async def _checked(
    engine: Engine,
    answer: Answer,
    round_: Round,
    draft: Draft,
    *,
    checks: Checks,
    how: str,
    question_id: str,
    deadline: float | None,
) -> GroundedAnswer:
    passages = _packed(answer, round_)
    if reason := _nothing_said(answer, draft, passages):
        return _refused(answer, reason)
    texts = [found.passage.searchable() for found in passages]
    bodies = [found.passage.text for found in passages]
    quotes = tuple(dict.fromkeys(part for quote in draft.quotes for part in as_written(quote, texts, bodies)))
    if not quotes and how == "exact":
        return _refused(answer, "invented_quotes")
    said = with_plain_marks(without_links(draft.answer, texts), len(passages), texts)
    short = without_links(draft.short_answer, texts)
    if stepped := leaks(said, quotes):
        return _refused(answer, "leakage", leaks=stepped)
    check = ClaimCheck(
        engine=engine,
        question=answer.question,
        claims=claims(said, texts),
        passages=passages,
        quotes=quotes,
        question_id=question_id,
        deadline=deadline,
    )
    judged = await check.judged(how)
    calls = (*answer.calls, *judged.calls)
    paired = tuple(zip(check.claims, judged.support, strict=True))
    quotes = quotes or tuple(dict.fromkeys(part for found in judged.support if found.supported for part in found.words))
    sure = confidence(
        [hybrid.confidence(found) for found in passages],
        draft.confidence if round_.p_correct is None else round_.p_correct,
        [found.number for found in judged.support if found.supported and found.number is not None],
        calibrated=round_.p_correct is not None,
    )
    covered = is_covered(judged.sufficient) and sure.coverage >= checks.settings.confidence_floor
    if reason := _fault(answer.question, paired, judged, short, quotes, covered=covered):
        shown_sure = sure if reason == "not_covered" else None
        refused = _refused(answer, reason, claims=paired, calls=calls, sure=shown_sure)
        return replace(refused, sufficient=judged.sufficient)
    text = marked(said, check.claims, judged.support, evidence=texts, drop=checks.settings.unsupported_claims == "drop")
    shown = cite(text, passages, quotes, checks.settings.citation_style)
    return GroundedAnswer(
        question=answer.question,
        text=shown.text,
        short_answer=short,
        refused=None,
        citations=shown.citations,
        quotes=quotes,
        claims=paired,
        removed=removed_marks(said, passages),
        leaks=(),
        confidence=sure,
        answer=answer,
        calls=calls,
        sufficient=judged.sufficient,
    )


def _packed(answer: Answer, round_: Round) -> tuple[Found, ...]:
    """The passages of the round's prompt in order; the first has number 1."""
    by_id = {found.passage.id: found for found in answer.evidence}
    return tuple(by_id[identity] for identity in round_.packing.packed_ids)


def _nothing_said(answer: Answer, draft: Draft, passages: Sequence[Found]) -> Reason | None:
    if answer.stop_reason == "no_evidence":
        return "screened" if any(gone.is_order for gone in answer.dropped) else "no_evidence"
    return "not_found" if draft.abstained or is_abstention(draft.answer) or not passages else None


def _fault(
    question: str,
    claims: Sequence[tuple[Claim, Support]],
    judged: Judged,
    short: str,
    quotes: Sequence[str],
    *,
    covered: bool,
) -> Reason | None:
    if not quotes:
        return "invented_quotes"
    if not any(found.supported for _, found in claims) or not _is_given(short, claims):
        return "unsupported"
    off_kind = judged.answers is None and not is_abstention(short) and of_kind(question, short) is False
    if judged.answers is False or off_kind:
        return "off_question"
    return None if covered else "not_covered"


def _is_given(short_answer: str, claims: Sequence[tuple[Claim, Support]]) -> bool:
    """Whether one of the claims that have most of the short answer's words is supported; all of them if none has any.

    An answer that it is not known needs a supported claim that says so.
    """
    if is_abstention(short_answer):
        return states_unknown(claim.text for claim, found in claims if found.supported)
    wanted = tokens(short_answer)
    shared = [len(wanted & tokens(claim.text)) for claim, _ in claims]
    most = max(shared, default=0)
    supported = [found.supported for (_, found), many in zip(claims, shared, strict=True) if many == most]
    return any(supported) if most else all(supported)


def _refused(
    answer: Answer,
    reason: Reason,
    *,
    claims: tuple[tuple[Claim, Support], ...] = (),
    leaks: tuple[str, ...] = (),
    calls: tuple[LedgerRow, ...] | None = None,
    sure: Confidence | None = None,
) -> GroundedAnswer:
    failed = next(((claim, found) for claim, found in claims if not found.supported and found.fault), None)
    why = f" ({failed[0].text} \u2013 {failed[1].fault})" if reason == "unsupported" and failed else ""
    return GroundedAnswer(
        question=answer.question,
        text=refusal(reason) + why,
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
