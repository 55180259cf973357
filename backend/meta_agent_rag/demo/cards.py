"""A run of the loop, live or recorded, as HTML: a card for each stage, its answer and what it cost."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from ..agent.engine import Answer
from ..agent.routes.vote import alike, upholds
from ..agent.state import NO_DEFICIT, Draft, Packing, Round
from ..grounding.confidence import is_doubtful
from ..grounding.quotes import is_verbatim, place
from ..llm.ledger import LedgerRow, total
from ..retrieval.passage import Found
from ..settings import Settings
from ..statistics import score_answer
from ..wording import FREE, counted, passage_name
from . import vocabulary
from .stepping import LoopView
from .vocabulary import at_work, stop_reason


def html(macro: str, *values: Any) -> str:
    """What a macro of cards.html makes of the values, all of which are escaped."""
    return str(getattr(_macros(), macro)(*values)).strip()


@cache
def _macros() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader(__package__, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters = (passage_name, share, with_citations, with_quotes)
    words = (vocabulary.deficit, vocabulary.spoken, vocabulary.without_addresses)
    pages.filters |= {one.__name__: one for one in (*filters, *words)}
    called = (counted, difference, missing, title_of, upholds, vocabulary.ballot_note, vocabulary.repair)
    pages.globals |= {one.__name__: one for one in called}
    tables = ("ANSWER_MODES", "ERROR_TYPES", "STAGES")
    pages.globals |= {"NO_DEFICIT": NO_DEFICIT, **{name: getattr(vocabulary, name) for name in tables}}
    return pages.get_template("cards.html").module


def quiet(text: str) -> str:
    """A less prominent line: a hint, or a placeholder."""
    return html("quiet", text)


def problem(words: str) -> str:
    """The line for a fault."""
    return html("status", "failed", words)


def share(figure: float | None) -> str:
    """A figure from 0 to 1 in percent."""
    return f"{min(max(figure or 0.0, 0.0), 1.0):.0%}"


def missing(ids: Sequence[str], evidence: Mapping[str, Found]) -> bool:
    """Whether the texts of some passages are unknown, as in a recorded run without its evidence."""
    return any(id_ not in evidence for id_ in ids)


def title_of(id_: str, evidence: Mapping[str, Found]) -> str:
    """The title of a passage, or a name made of its id."""
    return (evidence[id_].passage.title if id_ in evidence else "") or passage_name(id_)


def stages(view: LoopView, settings: Settings) -> str:
    """All cards so far, and the running stage last."""
    working = ""
    if view.status == "working":
        working = at_work(view.node, repaired=view.plan.deficit if view.plan else "", doubted=view.doubted)
    return html("stages", [Markup(card) for card in cards(view, settings)], len(view.rounds), working)


def cards(view: LoopView, settings: Settings) -> list[str]:
    """A card for each stage so far, in order."""
    evidence, before = view.evidence, None
    first = view.rounds[0].evidence_ids if view.rounds else tuple(evidence)
    shown = [html("retrieval", first, evidence, view.state.get("dropped", ()))] if first else []
    for one in view.passes:
        if one.plan is not None:
            known = () if before is None else (*before.evidence_ids, *before.searched_ids)
            new = [id_ for id_ in one.ids if id_ not in known]
            numbered = [(number, found) for number, (id_, found) in enumerate(evidence.items(), 1) if id_ in new]
            shown += [html("planning", one.plan), html("remediation", one.plan, numbered, evidence)]
        if one.draft is not None:
            shown.append(cognition(one.draft, one.packing, evidence, before))
        if one.judged is not None and one.judged.signals is not None:
            shown.append(monitoring(one.judged, settings, evidence, before))
        if one.judged is not None and one.judged.diagnosis is not None:
            shown.append(html("evaluating", one.judged.diagnosis))
        before = one.judged
    return shown


def cognition(draft: Draft, packing: Packing, evidence: Mapping[str, Found], before: Round | None) -> str:
    """A draft with its quotes marked in the passages that it was shown, and its differences from the previous one."""
    quotes = tuple(dict.fromkeys(draft.quotes))
    if missing(packing.packed_ids, evidence):
        return html("cognition", draft, before, evidence, (), (), quotes)
    packed = [evidence[id_] for id_ in packing.packed_ids]
    held = [
        (number, one)
        for number, one in enumerate(packed, 1)
        if any(is_verbatim(quote, [one.passage.text]) for quote in quotes)
    ]
    texts = [one.passage.searchable() for one in packed]
    lost = [(quote, _whereabouts(quote, evidence)) for quote in quotes if not is_verbatim(quote, texts)]
    return html("cognition", draft, before, evidence, held, lost, ())


def _whereabouts(quote: str, evidence: Mapping[str, Found]) -> str:
    for number, one in enumerate(evidence.values(), 1):
        if is_verbatim(quote, [one.passage.searchable()]):
            return f"is in passage {number}, which this draft was not shown"
    return "is not in any passage"


def monitoring(round_: Round, settings: Settings, evidence: Mapping[str, Found], before: Round | None = None) -> str:
    """The monitor's conclusion for a draft; a derivation or vote that is that of `before` is not repeated."""
    title = "Not satisfied: the draft needs review"
    if round_.satisfied:
        title = "Accepted because no better answer was found" if is_doubtful(round_.p_correct) else "Satisfied"
    return html("monitoring", round_, before, evidence, title, _gauges(round_, settings))


def _gauges(round_: Round, settings: Settings) -> list[tuple[str, float | None, float | None, str]]:
    """The signal that decides, and the cosine for comparison: name, value, threshold, and its role in words."""
    signals, limit, cosine = round_.signals, settings.monitor_similarity_threshold, "Cosine of the two answers"
    assert signals is not None
    if round_.vote is not None and round_.derivation is not None:
        words = "the vote decides: the draft must mean the same as the elected answer"
        similarity = alike(round_.draft.short_answer, round_.vote.elected)
        return [("Similarity of the draft to the elected answer", similarity, 1.0, words)]
    if round_.p_correct is not None:
        return [("Probability of being correct", round_.p_correct, None, "the fitted probability decides")]
    if settings.monitor_policy == "paper":
        return [(cosine, signals.similarity, limit, "the cosine of the two answers decides")]
    words = "agreement decides: the two answers must be equal, or one must contain the other"
    compared = "the cosine, which decides in the paper, is shown for comparison"
    overlap = ("Word overlap of the two answers", signals.overlap, None, words)
    return [overlap, (cosine, signals.similarity, limit, compared)]


def outcome(
    answer: Answer,
    golds: Sequence[str] = (),
    *,
    others: Mapping[str, str] | None = None,
    spent: str = "",
    selection: str = "best",
) -> str:
    """The answer, its change from the first draft, and why the loop stopped.

    `others` are answers to the same question by the name of what gave them. With `golds`, all answers are scored.
    """
    rounds, last = answer.rounds, answer.short_answer
    p_correct = rounds[answer.chosen].p_correct if rounds else None
    first = rounds[0].draft.short_answer if rounds else last
    answers = {**(others or {}), **({"First draft": first} if rounds else {}), "Returned answer": last}
    notes = [
        f"Gold answer: {' / '.join(golds)}." if golds else "",
        stop_reason(answer.stop_reason, p_correct),
        f"Estimated probability of being correct: {p_correct:.0%}." if p_correct is not None else "",
        spent,
        f"The draft of round {answer.chosen} was the best supported of {len(rounds)}."
        if len(rounds) > 1 and selection == "best"
        else "",
    ]
    cells = [(name, said, *_scored(said, golds)) for name, said in answers.items()]
    return html(
        "outcome", answer, _verdict(first, last, golds) if rounds else last, doubtful(answer, golds), cells, notes
    )


def doubtful(answer: Answer, golds: Sequence[str] = ()) -> bool:
    """The answer is wrong or, if no gold answer is known, probably so."""
    if golds:
        return score_answer(answer.short_answer, golds).em < 1.0
    return bool(answer.rounds) and is_doubtful(answer.rounds[answer.chosen].p_correct)


def _scored(short_answer: str, golds: Sequence[str]) -> tuple[str, str]:
    """The scores of an answer, and the kind of its cell."""
    if not golds:
        return "", ""
    scored = score_answer(short_answer, golds)
    return f"EM {100 * scored.em:.0f} · F1 {100 * scored.f1:.0f}", "m-right" if scored.em == 1.0 else "m-wrong"


def _verdict(first: str, last: str, golds: Sequence[str]) -> str:
    if not golds:
        return "The answer differs from the first draft." if first != last else "The answer did not change."
    before, after = score_answer(first, golds), score_answer(last, golds)
    if before.em and after.em:
        return "Correct from the start, and kept."
    if after.em:
        return "Repaired: the first draft was wrong, the answer is correct."
    if before.em:
        return "Broken: the first draft was correct, the answer is not."
    return "Closer, but not the gold answer." if after.f1 > before.f1 else "Wrong before and after."


def timeline(view: LoopView) -> str:
    """The cost of each round: calls, tokens, cache, cost and time, one line each."""
    lines = []
    for index, rows in groupby(sorted(view.rows, key=lambda row: row.round), lambda row: row.round):
        calls = tuple(rows)
        seconds = sum(row.latency_s for row in calls)
        lines.append((f"Repair {index}" if index else "First draft", f"{spent(calls)} · {seconds:.1f} s"))
    return html("timeline", lines, f"{spent(view.rows)} · {view.seconds:.1f} s in all") if lines else ""


def spent(rows: Collection[LedgerRow]) -> str:
    """Calls, tokens, cached share and cost in a line."""
    sums = total(tuple(rows))
    cost = FREE if sums.on_this_machine else "price unknown"
    if sums.cost_usd is not None:
        cost = f"${sums.cost_usd:.5f}"
        cost += f" + up to ${sums.failed_usd:.5f} for failed calls" if sums.failed_usd else ""
    parts = [
        counted(sums.calls, "call"),
        f"{sums.prompt_tokens:,} tokens read, {sums.completion_tokens:,} written",
        f"{sums.cache_hit_share or 0.0:.0%} from the prefix cache",
        f"{counted(sums.cached_calls, 'answer')} from the cache" if sums.cached_calls else "",
        counted(sums.failed_calls, "failed call") if sums.failed_calls else "",
        cost,
    ]
    return " · ".join(filter(None, parts))


_WORDS = re.compile(r"\S+\s*")
_CITATION = re.compile(r"\[(\d{1,3})\]")


def with_quotes(text: str, quotes: Sequence[str]) -> Markup:
    """A passage as HTML with its quotes marked; overlapping quotes share one mark."""
    marked = {at for quote in quotes if (span := place(quote, text)) is not None for at in range(*span)}
    parts = Markup()
    for quoted, run in groupby(range(len(text)), marked.__contains__):
        places = list(run)
        said = text[places[0] : places[-1] + 1]
        parts += Markup("<mark>{}</mark>").format(said) if quoted else said
    return parts


def with_citations(text: str) -> Markup:
    """An answer as HTML, its citations `[n]` highlighted."""
    return Markup(_CITATION.sub(r'<span class="m-cite">\1</span>', str(escape(text))))


def difference(before: str, after: str) -> Markup:
    """The later text as HTML, with inserted and deleted words marked, in order."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    parts = Markup()
    for what, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[i:j]), "".join(new[k:n])
        if what == "equal":
            parts += come
        else:
            parts += Markup("<del>{}</del> ").format(gone.strip()) if gone else ""
            parts += Markup("<ins>{}</ins> ").format(come.strip()) if come else ""
    return parts.strip()
