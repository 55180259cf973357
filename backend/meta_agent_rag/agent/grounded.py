"""The displayable form of an answer from documents: checked against the passages that the writer saw, or refused.

The rules are in the package `grounding`; the critic judges what they leave open (`claim_check`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import DataFileError
from ..grounding.abstention import Reason, is_abstention, refusal
from ..grounding.answer_kind import kind_asked
from ..grounding.citation import Citation
from ..grounding.citations import cite, removed_marks
from ..grounding.claims import Claim
from ..grounding.confidence import Confidence, confidence
from ..grounding.kinds.fitting import answers_in_kind
from ..grounding.leakage import leaks, phrases_with
from ..grounding.links import without_links
from ..grounding.marking import marked
from ..grounding.question_names import unknown_names
from ..grounding.quotes import as_written
from ..grounding.styles import Style, chosen
from ..grounding.support.citing import recited, without_strays
from ..grounding.support.pages import as_page
from ..grounding.support.proposed import proposed
from ..grounding.support.verdict import Support
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.providers import choose_provider
from ..llm.stages import serving, stage
from ..retrieval import hybrid
from ..retrieval.passage import Found
from ..settings import Settings
from ..text.dates import as_date
from ..text.normalise import normalised
from .claim_check import ClaimCheck, Judged
from .engine import Answer, Engine
from .routes import DERIVATION, DRAFT
from .state import Draft, Round
from .write import draft_of

_UNPROVEN = frozenset({"unsupported", "invented_quotes"})
_FEWEST_SENTENCES = 2


@dataclass(frozen=True, kw_only=True)
class GroundedAnswer:
    """The displayable part of an answer and its basis.

    `text` has its citations written out in the style of CITATION_STYLE; if `refused` gives a reason, it
    suggests what to try, and nothing is cited. `claims` come with their support; `removed` counts the
    citations of passages that were not in the prompt; `leaks` are the phrases that go beyond the
    documents. `answer` has the whole history, and `calls` all model calls.
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
    """How answers over one corpus are checked, read once from the settings."""

    settings: Settings
    style: Style
    leakage_phrases: tuple[str, ...]
    claim_check: str

    @classmethod
    def of(cls, settings: Settings, corpus: str) -> "Checks":
        """The checks for a corpus. Raises `UnknownNameError` for the style, `DataFileError` for its phrases."""
        return cls(
            settings=settings,
            style=chosen(settings.citation_style),
            leakage_phrases=phrases_with(_own_phrases(settings.leakage_dir, corpus)),
            claim_check=settings.claim_check or _usual_check(settings),
        )


def _usual_check(settings: Settings) -> str:
    critic = serving(stage("check_claims", settings), settings, choose_provider(settings))
    return "rules" if critic.is_embedded else "both"


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
    """The displayable answer.

    If the passages do not support the writer's wording, an equal answer that the loop derived from facts is checked
    in their place: it consists of the sentences that contain the facts. Unless CLAIM_CHECK=rules, a model is asked
    until the deadline (a `time.monotonic` timestamp). Raises only errors that must stop the run.
    """
    round_ = answer.rounds[answer.chosen]
    written = await _checked(engine, answer, round_.draft, checks, question_id=question_id, deadline=deadline)
    derived = _derived(answer.question, round_) if written.refused in _UNPROVEN else None
    if derived is None:
        return written
    so_far = replace(answer, calls=written.calls)
    found = await _checked(engine, so_far, derived, checks, question_id=question_id, deadline=deadline)
    return replace(written, calls=found.calls) if found.refused else replace(found, answer=answer)


def _derived(question: str, round_: Round) -> Draft | None:
    """The derivation as a draft, if it gives the same answer and has not been used yet.

    Each of its facts must have a sentence in the prompt, and there must be several, so that more is shown than one
    look-up. A verdict or a choice must have been compared in code.
    """
    derivation, draft = round_.derivation, round_.draft
    if derivation is None or not derivation.stands or draft.route == DERIVATION:
        return None
    packed = round_.packing.packed_ids
    sentences = [fact.sentence for fact in derivation.facts if fact.passage_id in packed and fact.sentence]
    if len(sentences) < len(derivation.facts) or len(set(sentences)) < _FEWEST_SENTENCES:
        return None
    if kind_asked(question) in {"verdict", "choice"} and not derivation.compared:
        return None
    given, drafted = derivation.answer, draft.short_answer
    day = as_date(given)
    same = normalised(given) == normalised(drafted) or (day is not None and day == as_date(drafted))
    return draft_of(derivation, packed) if same else None


async def _checked(
    engine: Engine, answer: Answer, draft: Draft, checks: Checks, *, question_id: str, deadline: float | None
) -> GroundedAnswer:
    round_ = answer.rounds[answer.chosen]
    passages = _packed(answer, round_)
    if reason := _nothing_said(answer, draft, passages):
        return _refused(answer, reason)
    texts = [found.passage.searchable() for found in passages]
    quotes = _quotes(draft.quotes, passages)
    bare = not quotes and _is_bare(draft, round_) and checks.claim_check != "rules"
    if bare:
        quotes = proposed(answer.question, draft.answer, [found.passage for found in passages])
    if not quotes:
        return _refused(answer, "invented_quotes")
    said, short = (without_links(part, texts) for part in (draft.answer, draft.short_answer))
    said = as_page(answer.question, said)
    only_links = bool(draft.short_answer.strip() and not short.strip())
    removed = removed_marks(said, passages)
    recitation = recited(said, passages, quotes, question=answer.question)
    said = recitation.text
    if stepped := leaks(said, quotes, checks.leakage_phrases):
        return _refused(answer, "leakage", leaks=stepped)
    check = ClaimCheck(
        engine=engine,
        question=answer.question,
        claims=recitation.claims,
        ruled=recitation.ruled,
        passages=passages,
        quotes=quotes,
        question_id=question_id,
        deadline=deadline,
    )
    judged = await check.judged(checks.claim_check)
    quotes = _copied(judged, quotes) if bare else quotes
    calls = (*answer.calls, *judged.calls)
    said, stated = without_strays(said, check.claims, judged.support, passages)
    paired = tuple(zip(stated, judged.support, strict=True))
    cited = [number for claim in stated for number in claim.marks]
    sure = confidence(
        [hybrid.confidence(found) for found in passages],
        draft.confidence if round_.p_correct is None else round_.p_correct,
        cited,
        calibrated=round_.p_correct is not None,
    )
    unsure = sure.coverage < checks.settings.confidence_floor
    unknown = unknown_names(answer.question, [found.passage for found in passages])
    reason = (
        "unsupported"
        if only_links or not quotes
        else _fault(check, judged, answer, short, unknown=bool(unknown), unsure=unsure)
    )
    if reason:
        shown_sure = sure if reason == "not_covered" else None
        return _refused(answer, reason, claims=paired, calls=calls, sure=shown_sure, names=unknown)
    text = marked(said, stated, judged.support, drop=checks.settings.unsupported_claims == "drop")
    shown = cite(text, passages, quotes, checks.style)
    return GroundedAnswer(
        question=answer.question,
        text=shown.text,
        short_answer=short,
        refused=None,
        citations=shown.citations,
        quotes=quotes,
        claims=paired,
        removed=removed,
        leaks=(),
        confidence=sure,
        answer=answer,
        calls=calls,
    )


def _packed(answer: Answer, round_: Round) -> tuple[Found, ...]:
    """The passages of the round's prompt in order; the first has number 1."""
    by_id = {found.passage.id: found for found in answer.evidence}
    return tuple(by_id[identity] for identity in round_.packing.packed_ids)


def _is_bare(draft: Draft, round_: Round) -> bool:
    """Is it the answer of a route that was not asked to quote, and not from memory?"""
    remembered = round_.derivation is not None and any(fact.from_memory for fact in round_.derivation.facts)
    return draft.route != DRAFT and not draft.quotes and not remembered


def _copied(judged: Judged, proposals: tuple[str, ...]) -> tuple[str, ...]:
    """What the critic copied for the supported claims, if it is believed; else what was proposed, if rules suffice."""
    shown = [found for found in judged.support if found.supported]
    copied = [words for found in shown for words in found.words if judged.answers is not None]
    return tuple(dict.fromkeys(copied)) or (proposals if any(one.standing == "supported" for one in shown) else ())


def _quotes(written: Sequence[str], passages: Sequence[Found]) -> tuple[str, ...]:
    """What the draft quoted, as the passages have it."""
    texts = [found.passage.searchable() for found in passages]
    bodies = [found.passage.text for found in passages]
    return tuple(dict.fromkeys(part for quote in written for part in as_written(quote, texts, bodies)))


def _nothing_said(answer: Answer, draft: Draft, passages: Sequence[Found]) -> Reason | None:
    if answer.stop_reason == "no_evidence":
        return "screened" if any(gone.is_order for gone in answer.dropped) else "no_evidence"
    return "not_found" if draft.abstained or is_abstention(draft.answer) or not passages else None


def _fault(
    check: ClaimCheck, judged: Judged, answer: Answer, short: str, *, unknown: bool, unsure: bool
) -> Reason | None:
    if judged.answers is False:
        return "off_question"
    if not any(found.supported for found in judged.support) or not check.gives(short, judged):
        return "unsupported"
    said = [claim.text for claim, found in zip(check.claims, judged.support, strict=True) if found.supported]
    in_kind = is_abstention(short) or answers_in_kind(answer.question, short, said, answers=judged.answers)
    if not in_kind or not check.is_connected(judged):
        return "off_question"
    if unknown:
        return "unknown_name"
    return "not_covered" if unsure else None


def _refused(
    answer: Answer,
    reason: Reason,
    *,
    claims: tuple[tuple[Claim, Support], ...] = (),
    leaks: tuple[str, ...] = (),
    calls: tuple[LedgerRow, ...] | None = None,
    sure: Confidence | None = None,
    names: Sequence[str] = (),
) -> GroundedAnswer:
    return GroundedAnswer(
        question=answer.question,
        text=refusal(reason, names=names),
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
