"""The opening sentence of a report: the result with its interval, claiming no more than the data support."""

from collections.abc import Mapping
from typing import Any

from meta_agent_rag.llm.providers import EMBEDDED, providers
from meta_agent_rag.statistics.paired import Verdict
from meta_agent_rag.wording import counted

from ..comparing.words import p_words
from ..tables import signed, with_interval

Summary = Mapping[str, Any]
_PLACES: Mapping[Verdict, str] = {
    "more": "scores higher than",
    "less": "scores lower than",
    "unknown": "does not differ significantly from",
}


def headline(summary: Summary) -> str:
    """The result of the method that the run is about; with several, against the best of the others, pair by pair.

    A difference is claimed only if `statistics.verdict` finds one, by the same rule as in `benchmarks.compare`.
    The best of several others is selected after the run, which can only put that method at a disadvantage.
    """
    comparison = summary.get("comparison")
    if not comparison:
        return _alone(summary)
    methods, name = summary["methods"], comparison["method"]
    best = max(comparison["against"], key=lambda other: (methods[other]["f1"], methods[other]["em"]))
    return _compared(summary, name, best, comparison["against"][best], len(comparison["against"]))


def _alone(summary: Summary) -> str:
    name, figures = next(iter(summary["methods"].items()))
    return (
        f"**{name} scores {with_interval(figures['f1'], figures['f1_ci95'])} F1 and "
        f"{with_interval(figures['em'], figures['em_ci95'])} EM over {counted(figures['n'], 'question')}** "
        f"(percent, 95 % intervals); {figures['answered']} answered, {figures['errors']} failed."
    )


def _compared(summary: Summary, name: str, best: str, differences: Mapping[str, Any], others: int) -> str:
    figures, n, found = summary["methods"], summary["n"], differences["f1"]
    scored = with_interval(figures[name]["f1"], figures[name]["f1_ci95"])
    theirs = with_interval(figures[best]["f1"], figures[best]["f1_ci95"])
    rival = f"{best} ({theirs})" if others == 1 else f"{best} ({theirs}), the best of the {others} other methods"
    gap = f"{signed(found['difference'], found['ci95'])} F1 points, {p_words(found['p'])}"
    stated = f"{name} ({scored} F1) {_PLACES[found['verdict']]} {rival}, {_over(differences, n)}"
    return f"**{stated}**: paired difference {gap} (percent, 95 % bootstrap intervals)."


def _over(differences: Mapping[str, Any], n: int) -> str:
    shared = differences.get("n", n)
    return f"over {counted(n, 'question')}" if shared == n else f"over the {shared} of {n} questions that both answered"


def of_the_packaged_model(summary: Mapping[str, Any]) -> str:
    """That the packaged model's scores mean little, and what to do; empty if another model answered."""
    if any(providers()[EMBEDDED].flash in figures.get("models", ()) for figures in summary["methods"].values()):
        return _PACKAGED
    return ""


_PACKAGED = (
    "The packaged model is too small for this task, so these scores only show that everything works. "
    "`marag tour` shows real answers; `marag models` lists larger models."
)


def mixed(methods: Mapping[str, Mapping[str, Any]]) -> str:
    """The caveat of every table if more than one model answered; empty if only one did, or if it is not known."""
    models = {model for figures in methods.values() for model in figures.get("models", ())}
    return "mixed models" if len(models) > 1 else ""


def mixture(summary: Summary) -> str:
    """States which models answered which rows of a mixed run, with their calls; empty for other runs."""
    if not mixed(summary["methods"]):
        return ""
    stated = [
        f"{name}: {', '.join(f'{model} ({calls})' for model, calls in figures.get('models', {}).items()) or 'unknown'}"
        for name, figures in summary["methods"].items()
    ]
    return f"**Mixed models**: not every call was answered by the same model, in calls {'; '.join(stated)}."


def completeness(summary: Summary) -> str:
    """States how many answers are missing, because they failed or were not reached; empty for a complete run."""
    lacking = [
        f"{name} answered {figures['answered']} of {figures['n']}, {figures['errors']} failed"
        for name, figures in summary["methods"].items()
        if figures["answered"] < figures["n"]
    ]
    return f"**Answers are missing, and scores are over the others**: {'; '.join(lacking)}." if lacking else ""
