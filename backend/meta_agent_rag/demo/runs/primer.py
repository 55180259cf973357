"""An introduction for first-time visitors: the three terms of the loop, and its gain in figures, as HTML."""

from collections.abc import Iterable
from html import escape

from ...wording import counted
from .files import Run
from .tour import LOOP, ONE_PASS

_TERMS = (
    (
        "Derivation",
        "A second way to an answer: the question is broken into single facts, each fact is looked up in the passages, "
        "and code, not the model, combines them.",
    ),
    (
        "Vote",
        "The draft, the derivation and, while it is undecided, further answers of the model vote; answers in the same "
        "words support each other. If another answer than the draft's wins, the draft is questioned.",
    ),
    (
        "Deficit",
        "What is wrong with a draft: a fact is missing (insufficient knowledge) or left to memory (internal only), it "
        "strays from the passages (external only), or joins facts wrongly (reasoning error).",
    ),
)


_ASKED = "What are a derivation, the vote and a deficit, and what does the loop gain?"
_DEVELOPED = (
    "The loop was developed with these questions, so they only show how it works; docs/findings.md has its gain on "
    "others."
)


def primer(runs: Iterable[Run]) -> str:
    """The terms, and a sentence with figures for each run that has both the loop and a single pass."""
    terms = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in _TERMS)
    gained = " ".join([*filter(None, map(_gained, runs)), _DEVELOPED])
    opened = f'<details class="m-primer"><summary>{_ASKED}</summary>'
    return f'{opened}<dl class="m-facts">{terms}</dl><p class="m-note">{escape(gained)}</p></details>'


def _gained(run: Run) -> str:
    methods = run.summary.get("methods") or {}
    if not {LOOP, ONE_PASS} <= set(methods):
        return ""
    loop, one_pass = methods[LOOP], methods[ONE_PASS]
    n = int(loop["n"])
    calls = (float(each["llm_calls"]) / n for each in (loop, one_pass))
    return (
        f"{run.name.removeprefix('recorded: ')}, {counted(n, 'question')}: F1 of one pass "
        f"{_scored(one_pass['f1'], one_pass['f1_ci95'])}, of the loop {_scored(loop['f1'], loop['f1_ci95'])}, "
        f"with {' calls per question instead of '.join(f'{each:.1f}' for each in calls)}."
    )


def _scored(value: float, interval: "list[float]") -> str:
    low, high = interval
    return f"{value:.0f} % (95 % interval {low:.0f} to {high:.0f})"
