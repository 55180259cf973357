"""The end of a walk, and the cost of every round, as HTML."""

from collections.abc import Sequence
from html import escape

from ...agent.engine import Answer
from ...llm.ledger import LedgerRow, Totals, total
from ...statistics.scores import AnswerScore, score_answer
from ...wording import FREE, counted
from ..marking import with_citations
from ..words import stop_reason
from .walk import Sight


def outcome(answer: Answer, golds: Sequence[str] = ()) -> str:
    """The answer, its change from the first draft, and why the loop stopped."""
    chosen = answer.rounds[answer.chosen]
    draft, ended = chosen.draft, stop_reason(answer.stop_reason, chosen.p_correct)
    return (
        f'<section class="m-card m-outcome" aria-label="Answer"><h3><span class="m-stage">Answer</span>'
        f'{_chosen(answer)}</h3><p class="m-short">{escape(draft.short_answer)}</p>'
        f'<p class="m-answer">{with_citations(draft.answer)}</p>{_gain(answer, golds)}'
        f'<p class="m-note">{escape(ended)}</p></section>'
    )


def _chosen(answer: Answer) -> str:
    if len(answer.rounds) == 1:
        return "The first draft was kept"
    which = "the first draft" if answer.chosen == 0 else f"the draft after repair {answer.chosen}"
    return f"Best supported of {len(answer.rounds)}: {which}"


def _gain(answer: Answer, golds: Sequence[str]) -> str:
    """The first draft beside the final one, each with its score if gold answers are known."""
    first, last = answer.rounds[0].draft.short_answer, answer.short_answer
    cells = [_scored("First draft", first, golds), _scored("Returned answer", last, golds)]
    gold = f'<p class="m-note">Gold answer: {escape(" / ".join(golds))}.</p>' if golds else ""
    return f'<div class="m-gain">{"".join(cells)}</div><p class="m-verdict">{_verdict(first, last, golds)}</p>{gold}'


def _scored(name: str, short_answer: str, golds: Sequence[str]) -> str:
    scored = score(short_answer, golds)
    figures, kind = "", "m-open"
    if scored is not None:
        kind = "m-right" if scored.em == 1.0 else "m-wrong"
        figures = f"<small>EM {100 * scored.em:.0f} · F1 {100 * scored.f1:.0f}</small>"
    return f'<div class="{kind}"><span>{name}</span><strong>{escape(short_answer)}</strong>{figures}</div>'


def _verdict(first: str, last: str, golds: Sequence[str]) -> str:
    before, after = score(first, golds), score(last, golds)
    if before is None or after is None:
        return "The answer was repaired." if first != last else "The answer did not change."
    if before.em and after.em:
        return "Correct from the start, and kept."
    if after.em:
        return "Repaired: the first draft was wrong, the answer is correct."
    if before.em:
        return "Broken: the first draft was correct, the answer is not."
    return "Closer, but not the gold answer." if after.f1 > before.f1 else "Wrong before and after."


def timeline(sight: Sight) -> str:
    """The cost of each round: calls, tokens, cache, cost and time, one line each with a bar for the time."""
    if not sight.rows:
        return ""
    rounds = sorted({row.round for row in sight.rows})
    by_round = {index: [row for row in sight.rows if row.round == index] for index in rounds}
    longest = max(_seconds(rows) for rows in by_round.values()) or 1.0
    lines = "".join(_line(_named(index), rows, longest) for index, rows in by_round.items())
    sum_ = f'<p class="m-total"><strong>Total</strong> {_spent(sight.rows)} · {sight.seconds:.1f} s in all</p>'
    return f'<section class="m-timeline" aria-label="Cost of each round"><h3>Cost and time</h3>{lines}{sum_}</section>'


def _named(index: int) -> str:
    return "First draft" if index == 0 else f"Repair {index}"


def _seconds(rows: Sequence[LedgerRow]) -> float:
    return sum(row.latency_s for row in rows)


def _line(name: str, rows: Sequence[LedgerRow], longest: float) -> str:
    seconds = _seconds(rows)
    return (
        f'<div class="m-line"><div><strong>{name}</strong> {_spent(rows)} · {seconds:.1f} s</div>'
        f'<div class="m-track" aria-hidden="true"><span class="m-fill" style="width:{seconds / longest:.0%}"></span>'
        "</div></div>"
    )


def _spent(rows: Sequence[LedgerRow]) -> str:
    sums = total(rows)
    parts = [
        counted(sums.calls, "call"),
        f"{sums.prompt_tokens:,} tokens read, {sums.completion_tokens:,} written",
        f"{sums.cache_hit_share or 0.0:.0%} from the prefix cache",
    ]
    if sums.cached_calls:
        parts.append(f"{counted(sums.cached_calls, 'answer')} from the cache")
    if sums.failed_calls:
        parts.append(f"{counted(sums.failed_calls, 'failed call')}")
    return " · ".join([*parts, _cost(sums)])


def _cost(sums: Totals) -> str:
    if sums.cost_usd is not None:
        failed = f" + up to ${sums.failed_usd:.5f} for failed calls" if sums.failed_usd else ""
        return f"${sums.cost_usd:.5f}{failed}"
    return FREE if sums.on_this_machine else "price unknown"


def score(short_answer: str, golds: Sequence[str]) -> AnswerScore | None:
    """The official score of an answer, `None` if no gold answer is known."""
    return score_answer(short_answer, golds) if golds else None
