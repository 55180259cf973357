"""The monitor's card: its verdict, the gauge with the threshold, and every signal in words."""

from collections.abc import Mapping
from html import escape

from ...agent.calibration import calibration_in_force
from ...agent.derivation import Derivation
from ...agent.routes import Vote
from ...agent.routes.vote import upholds
from ...agent.state import Round, Signals
from ...errors import MetaRagError
from ...grounding.confidence import is_doubtful
from ...retrieval.passage import Found
from ...settings import Settings
from .derivations import bars, chain


def monitoring(round_: Round, settings: Settings, evidence: Mapping[str, Found], before: Round | None = None) -> str:
    """The monitor's signals and conclusion for a draft; `evidence` holds the known passages.

    Parts unchanged since the round `before` are not repeated.
    """
    assert round_.signals is not None
    verdict = _verdict(round_)
    if round_.vote is not None and round_.derivation is not None:
        body = _routes(round_, round_.derivation, round_.vote, before, evidence)
    else:
        body = _two_routes(round_) + _gauge(round_, settings) + _signals(round_.signals)
    kind = "satisfied" if round_.satisfied else "doubted"
    return (
        f'<section class="m-card m-monitoring m-{kind}" aria-label="Monitoring: {verdict}">'
        f'<h3><span class="m-stage">Monitoring</span>{verdict}</h3>{body}</section>'
    )


def _verdict(round_: Round) -> str:
    """The monitor's verdict in words."""
    if not round_.satisfied:
        return "Not satisfied: the draft needs review"
    return "Accepted because no better answer was found" if is_doubtful(round_.p_correct) else "Satisfied"


def _routes(
    round_: Round, derivation: Derivation, vote: Vote, before: Round | None, evidence: Mapping[str, Found]
) -> str:
    """The derivation and the vote, each only if new, and how the draft relates to them."""
    known = before is not None and before.derivation == derivation
    shown = "" if known else chain(derivation, evidence)
    if before is None or before.vote != vote:
        return shown + bars(vote, derivation)
    agrees = "agrees" if upholds(vote, round_.draft.short_answer) else "does not agree"
    stands = f"The vote before this repair is still valid. It elected “{vote.elected}”; the new draft {agrees} with it."
    return f'{shown}<p class="m-note">{escape(stands)}</p>'


def _two_routes(round_: Round) -> str:
    second = round_.second_answer
    other = "none" if second is None else second.short_answer or second.error or "none"
    steps = second.steps if second is not None else ()
    how = "".join(f"<li>{escape(step)}</li>" for step in steps)
    shown = (
        f'<details class="m-passage"><summary>Steps of the second answer</summary><ol>{how}</ol></details>'
        if how
        else ""
    )
    return (
        '<div class="m-routes"><div><span>Draft</span><strong>'
        f"{escape(round_.draft.short_answer)}</strong></div><div><span>Second answer</span><strong>"
        f"{escape(other)}</strong></div></div>{shown}"
    )


def _gauge(round_: Round, settings: Settings) -> str:
    """A bar from 0 to 1 with a mark at the threshold, and the deciding signal in words."""
    signals = round_.signals
    assert signals is not None
    if round_.p_correct is not None:
        threshold = _fitted_threshold(settings)
        return _bar("Probability of being correct", round_.p_correct, threshold, "the fitted probability decides")
    if settings.monitor_policy == "paper":
        words = "the cosine of the two answers decides"
        return _bar("Cosine of the two answers", signals.similarity, settings.monitor_similarity_threshold, words)
    words = "agreement decides: the two answers must be equal, or one must contain the other"
    cosine = "the cosine, which decides in the paper, is shown for comparison"
    return _bar("Word overlap of the two answers", signals.overlap, None, words) + _bar(
        "Cosine of the two answers", signals.similarity, settings.monitor_similarity_threshold, cosine
    )


def _fitted_threshold(settings: Settings) -> float | None:
    """The threshold of the calibration in force; a run made elsewhere may have used another, unknown one."""
    try:
        return calibration_in_force(settings).threshold
    except MetaRagError:
        return None


def _bar(name: str, value: float | None, threshold: float | None, words: str) -> str:
    filled = 0.0 if value is None else min(max(value, 0.0), 1.0)
    figure = "nothing to compare" if value is None else f"{value:.2f}"
    against = f"{figure}, threshold {threshold:.2f}" if threshold is not None else figure
    mark = ""
    if threshold is not None:
        mark = f'<span class="m-threshold" style="left:{min(max(threshold, 0.0), 1.0):.0%}"></span>'
    low = " m-low" if threshold is not None and (value is None or value < threshold) else ""
    head = f'<div class="m-gauge-head"><span>{escape(name)}</span><span>{escape(against)}</span></div>'
    track = f'<div class="m-track"><span class="m-fill" style="width:{filled:.0%}"></span>{mark}</div>'
    label = escape(f"{name}: {against}")
    note = f'<p class="m-note">Here {escape(words)}.</p>'
    return f'<div class="m-gauge{low}" role="img" aria-label="{label}">{head}{track}{note}</div>'


def _signals(signals: Signals) -> str:
    rows = (
        ("Same short answer", _yes(signals.agreement)),
        ("Cosine of the answers", _figure(signals.similarity)),
        ("Shared words (F1)", _share(signals.overlap)),
        ("Verbatim quotes", _share(signals.verbatim)),
        ("Question covered by the quotes", _share(signals.coverage)),
        ("Answer found in a quote", _yes(signals.quoted)),
        ("Answer of the expected kind", _yes(signals.of_kind)),
        ("The draft abstains", _yes(signals.abstained)),
        ("Passages in the prompt", str(signals.evidence_passages)),
        ("The writer's own confidence", _share(signals.confidence)),
        ("Log-probability, draft", _figure(signals.logprob)),
        ("Log-probability, second route", _figure(signals.reference_logprob)),
    )
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in rows)
    return f'<details class="m-passage"><summary>All signals</summary><dl class="m-signals">{shown}</dl></details>'


_ABSENT = '<span class="m-absent">not measured</span>'


def _yes(value: bool | None) -> str:
    return _ABSENT if value is None else "yes" if value else "no"


def _figure(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.0%}"
