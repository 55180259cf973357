"""Generate the tables of the findings and the README, and the figures of the demo, from `benchmarks/results`.

    python -m benchmarks.tools.findings docs/findings.md README.md

A table is placed between `<!-- table: NAME -->` and `<!-- /table -->`. NAME is one of `TABLES`, or a table of an
analysis, computed over the `gold` answers of the pooled data sets, or, written NAME@DATASET, over one data set.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from meta_agent_rag.agent.state import NO_DEFICIT
from meta_agent_rag.cli.shared.command import Debug, reporting, say
from meta_agent_rag.datasets import discover
from meta_agent_rag.errors import InputError
from meta_agent_rag.grounding.confidence import LEVELS, level
from meta_agent_rag.statistics import mcnemar_exact, paired_difference, permutation_p

from ..analyses import Material, Row, diagnosis, discover_analyses
from ..metrics import RIGHT, contains_answer
from ..plots import Plot, intervals, legend, save
from ..recording import Recording
from ..statistics import binomial_interval
from ..tables import Cells, Table, as_markdown, number, p_words, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE_PASS, SAMPLING, LOOP = "standard_rag", "self_consistency", "metarag"
POOLED = ("hotpotqa", "2wikimultihopqa")
"""The data sets that are also reported together."""
SEED = 42
RESULTS = Path(__file__).parents[1] / "results"
HELD_OUT = RESULTS.with_name("recorded") / "held_out.json"
"""The held-out result of each data set, which the demo opens with."""
IMAGES = Path(__file__).parents[2] / "docs" / "images"
_TABLE = re.compile(r"(<!-- table: ([\w@-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)

Rows: TypeAlias = Sequence[Row]

app = typer.Typer(add_completion=False)


@app.command()
@reporting
def main(
    documents: Annotated[list[Path], typer.Argument(help="Markdown files with marked tables.")],
    debug: Debug = False,
) -> None:
    """Regenerate every marked table, `recorded/held_out.json` and the findings' plot.

    Identical records give identical tables.
    """
    HELD_OUT.write_text(json.dumps(held_out(records()), indent=1) + "\n", encoding="utf-8")
    save(gain_by_size(), IMAGES)
    for document in documents:
        text = document.read_text(encoding="utf-8")
        document.write_text(rendered(text), encoding="utf-8")
        say(f"{str(document)!r}: {len(_TABLE.findall(text))} tables.")


def rendered(text: str) -> str:
    """A document with its tables regenerated from the current records. Raises `InputError` for an unknown table."""
    return _TABLE.sub(lambda found: f"{found[1]}{as_markdown(_table(found[2]))}\n{found[3]}", text)


def _table(name: str) -> Table:
    if name in TABLES:
        return TABLES[name](records())
    own, _, dataset = name.partition("@")
    tables = {table.name: table for table in _of_analyses(*([dataset] if dataset else POOLED))}
    if own not in tables:
        known = ", ".join(sorted({*TABLES, *tables}))
        raise InputError(f"Unknown table {name!r}; choose one of {known}.")
    return tables[own]


@cache
def _of_analyses(*names: str) -> tuple[Table, ...]:
    """The tables of every single-method analysis, over the loop's `gold` answers to some data sets."""
    gold = [one for one in records() if one.mode == "gold" and one.dataset in names]
    if not gold:
        raise InputError(f"No record in {str(RESULTS)!r} covers {' or '.join(names)} in gold mode.")
    rows = sorted((row for one in gold for row in one.rows[LOOP]), key=lambda row: str(row["id"]))
    first = gold[0].recording
    material = Material(
        arms=tuple(arm for arm in first.arms if arm.name == LOOP),
        rows={LOOP: rows},
        n=len(rows),
        seed=SEED,
        quadrants=first.quadrants,
        tariffs=first.tariffs,
    )
    analyses = (one for one in discover_analyses() if not one.across)
    return tuple(table for one in analyses for table in one.tables(one.measure(material)))


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A record's answers by method, in the order of its questions; `label` is the data set as its authors write it."""

    dataset: str
    label: str
    mode: str
    rows: Mapping[str, Rows]
    recording: Recording

    def with_those_of(self, other: "Recorded") -> "Recorded":
        """These answers followed by the other record's, by method."""
        names = dict.fromkeys((*self.rows, *other.rows))
        return replace(self, rows={name: [*self.rows.get(name, ()), *other.rows.get(name, ())] for name in names})


@cache
def records(folder: str = ".") -> tuple[Recorded, ...]:
    """The records in a folder of the results, those of pooled data sets first.

    Records of the same data set and mode, which cover different questions, are merged.
    """
    found: dict[tuple[str, str], Recorded] = {}
    for path in sorted((RESULTS / folder).glob("*.jsonl.gz"), key=lambda path: path.name.removesuffix(".jsonl.gz")):
        recording = Recording.read(path)
        rows: dict[str, list[Row]] = {}
        for row in recording.rows():
            rows.setdefault(row["method"], []).append(row)
        dataset, mode = recording.run["experiment"]["dataset"], recording.run["experiment"]["mode"]
        known = discover().get(dataset)
        label = dataset if known is None else known.label
        one = Recorded(dataset=dataset, label=label, mode=mode, rows=rows, recording=recording)
        found[dataset, mode] = found[dataset, mode].with_those_of(one) if (dataset, mode) in found else one
    order = {name: place for place, name in enumerate(POOLED)}
    return tuple(sorted(found.values(), key=lambda one: (one.mode, order.get(one.dataset, len(order)))))


def _pooled(recorded: Sequence[Recorded]) -> list[Recorded]:
    return [one for one in recorded if one.mode == "gold" and one.dataset in POOLED]


def _together(recorded: Sequence[Recorded]) -> Recorded:
    """The records of the pooled data sets as one."""
    return reduce(Recorded.with_those_of, _pooled(recorded))


def _parts(recorded: Sequence[Recorded], both: str = "**both**") -> list[tuple[str, Mapping[str, Rows]]]:
    """Each record's rows with its label, and those of the pooled data sets together after these."""
    parts = [(one.label, one.rows) for one in recorded]
    if len(pooled := _pooled(recorded)) > 1:
        parts.insert(len(pooled), (both, _together(pooled).rows))
    return parts


def _percent(rows: Rows, score: str) -> list[float]:
    """EM or F1 of each question in percent; a failed question scores 0."""
    return [100.0 * (row[score] or 0.0) for row in rows]


def _gain(one: Sequence[float], other: Sequence[float], *, exact: bool) -> str:
    """The paired difference with its interval and p: McNemar's if `exact`, else that of a permutation test."""
    found = paired_difference(one, other, seed=SEED)
    pairs = list(zip(one, other, strict=True))
    only = (sum(a > b for a, b in pairs), sum(b > a for a, b in pairs))
    p = mcnemar_exact(*only) if exact else permutation_p(one, other, seed=SEED)
    return f"{signed(found.mean, (found.low, found.high))}, {p_words(p)}"


def _against(one: Rows, other: Rows, *, calls: bool = True) -> Cells:
    """The number of questions, EM and F1 of two methods on them, the gains, and their calls."""
    scores = [[_percent(rows, score) for score in ("em", "f1")] for rows in (one, other)]
    means = [number(fmean(values)) for side in scores for values in side]
    gains = [_gain(scores[0][place], scores[1][place], exact=place == 0) for place in (0, 1)]
    spent = ", ".join(number(fmean(row["llm_calls"] for row in rows)) for rows in (one, other))
    return (str(len(one)), *means, *gains, *([spent] if calls else []))


def quality(recorded: Sequence[Recorded]) -> Table:
    """One pass against the loop, by data set and pooled."""
    named = [replace(one, label=f"{one.label}, `{one.mode}`") for one in recorded]
    both = f"**{' and '.join(one.label for one in recorded if one.dataset in POOLED)}**"
    rows = [(label, *_against(own[ONE_PASS], own[LOOP])) for label, own in _parts(named, both)]
    scores = ("one pass, EM", "F1", "`metarag`, EM", "F1", "gain in EM", "gain in F1", "calls: one pass, loop")
    return Table(name="quality", title="One pass against the loop", head=("", "n", *scores), rows=rows)


_STATES = {"unseen_default": "before", "unseen_describing": "now"}
"""Records over questions that nothing was fitted on, by folder: before plans came from descriptions, and since."""


def _unseen() -> list[Recorded]:
    return [replace(one, label=f"{one.label}, {state}") for own, state in _STATES.items() for one in records(own)]


def unseen(_: Sequence[Recorded]) -> Table:
    """One pass against the loop on questions that nothing was fitted on."""
    rows = [(one.label, *_against(one.rows[ONE_PASS], one.rows[LOOP])) for one in _unseen()]
    return replace(quality(records("unseen_default")), name="unseen", rows=rows)


def unseen_sampling(_: Sequence[Recorded]) -> Table:
    """Self-consistency against the loop on questions that nothing was fitted on."""
    rows: list[Cells] = []
    for one in records("unseen_sampling"):
        for method in (name for name in one.rows if name.startswith(SAMPLING)):
            n, *scores, __, gain, calls = _against(one.rows[method], one.rows[LOOP])
            rows.append((one.label, f"`{method}`", n, scores[1], scores[3], gain, calls.partition(",")[0]))
    head = ("", "method", "n", "F1", f"`{LOOP}`, F1", "loop gains", "calls")
    return Table(name="unseen_sampling", title="Self-consistency against the loop", head=head, rows=rows)


_MODELS = {
    "smollm2-135m-instruct": "SmolLM2-135M",
    "qwen2.5-coder-0.5b-instruct": "Qwen2.5-Coder-0.5B",
    "qwen2.5-coder-1.5b-instruct": "Qwen2.5-Coder-1.5B",
}
"""Models by the folder of their records, the smallest first."""


def _of_model(folder: str) -> Recorded:
    return _together(records(f"model_sizes/{folder}"))


def model_sizes(_: Sequence[Recorded]) -> Table:
    """What sampling and the loop gain over one pass with models of different sizes."""
    rows: list[Cells] = []
    for folder, label in _MODELS.items():
        own = _of_model(folder).rows
        cells = [label, number(fmean(_percent(own[ONE_PASS], "f1")))]
        for method in (SAMPLING, LOOP):
            if method not in own:  # it was stopped for want of time
                cells += ["-"] * 3
                continue
            *scores, gain, calls = _against(own[ONE_PASS], own[method])
            cells += [scores[4], gain, calls.rpartition(" ")[2]]
        rows.append(tuple(cells))
    head = ("model", "one pass, F1", f"`{SAMPLING}`, F1", "gain", "calls", f"`{LOOP}`, F1", "gain", "calls")
    return Table(name="model_sizes", title="Gain by model size", head=head, rows=rows)


def gain_by_size() -> Plot:
    """The gains of `model_sizes` with their intervals, one row per model."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        gains: dict[str, list[tuple[float, float, float]]] = {SAMPLING: [], LOOP: []}
        for folder, (method, values) in product(_MODELS, gains.items()):
            rows = _of_model(folder).rows
            if method not in rows:
                values.append((math.nan,) * 3)
                continue
            found = paired_difference(*(_percent(rows[name], "f1") for name in (ONE_PASS, method)), seed=SEED)
            values.append((found.mean, found.low, found.high))
        axes.axvline(0.0, color="grey", linewidth=0.8)
        intervals(axes, list(_MODELS.values()), gains)
        axes.set_xlabel("F1 points over one pass, with 95 % intervals")
        legend(axes)

    return Plot(name="gain-by-size", title="What the loop gains by model size", draw=draw, height=2.5)


def open_domain_baselines(_: Sequence[Recorded]) -> Table:
    """The methods that search for themselves against one pass over a whole corpus."""
    (one,) = records("open_domain_baselines")
    alone = one.rows[ONE_PASS]
    rows = [(f"`{name}`", *_against(alone, own, calls=False)) for name, own in one.rows.items() if name != ONE_PASS]
    head = ("method", "n", "one pass, EM", "F1", "method, EM", "F1", "gain in EM", "gain in F1")
    return Table(name="open_domain_baselines", title="Searching methods against one pass", head=head, rows=rows)


def baselines(_: Sequence[Recorded]) -> Table:
    """Every other method against the loop, in runs that have them all."""
    asked = _pooled(records("one_machine"))
    names = [*dict.fromkeys(name for one in asked for name in one.rows if name != LOOP), LOOP]
    rows = [_beside(f"`{name}`", asked, name, LOOP) for name in names]
    head = ("method", *_BESIDE, "calls")
    return Table(name="baselines", title="Every method against the loop", head=head, rows=rows)


def ablations(_: Sequence[Recorded]) -> Table:
    """Ablations: the loop without each part against the whole loop of the same run."""
    prefix, asked = f"{LOOP} LOOP_WITHOUT=", _pooled(records("ablations"))
    whole = f"{prefix}none"
    names = dict.fromkeys(name for one in asked for name in one.rows if name != whole)
    rows = [_beside(f"`{name.removeprefix(prefix)}`", asked, name, whole) for name in names]
    head = ("without", *_BESIDE, "calls")
    return Table(name="ablations", title="What each part of the loop gains", head=head, rows=rows)


_BESIDE = ("HotpotQA, F1", "loop gains", "2WikiMultiHopQA, F1", "loop gains", "both, EM", "F1", "loop gains")


def _beside(label: str, asked: Sequence[Recorded], method: str, loop: str) -> Cells:
    """F1 of a method, and what the loop gains over it: on each pooled data set, and on both together."""
    cells = [label]
    for one in (*asked, _together(asked)):
        _, em, f1, *_, gain, calls = _against(one.rows[method], one.rows[loop])
        cells += [*([em] if one not in asked else []), f1, "" if method == loop else gain]
    return (*cells, calls.partition(",")[0])


def held_out(recorded: Sequence[Recorded]) -> list[dict[str, Any]]:
    """F1 of one pass and of the loop on each data set in `gold` mode, and their paired difference with its interval."""
    found = []
    for one in (one for one in recorded if one.mode == "gold"):
        alone, loop = (_percent(one.rows[method], "f1") for method in (ONE_PASS, LOOP))
        gain = paired_difference(alone, loop, seed=SEED)
        figures = {
            "one_pass": fmean(alone),
            "loop": fmean(loop),
            "gain": gain.mean,
            "low": gain.low,
            "high": gain.high,
            "p": permutation_p(alone, loop, seed=SEED),
        }
        rounded = {name: round(value, 4) for name, value in figures.items()}
        found.append({"dataset": one.label, "n": len(loop), **rounded})
    return found


def contained(recorded: Sequence[Recorded]) -> Table:
    """How often an answer contains the gold answer, however long it is: one pass, first draft and returned answer."""
    rows: list[Cells] = []
    for label, own in _parts([one for one in recorded if one.mode == "gold"]):
        drafts = [row["rounds"][0]["draft"]["short_answer"] if row["rounds"] else "" for row in own[LOOP]]
        drafted = [_holds(row, draft) for row, draft in zip(own[LOOP], drafts, strict=True)]
        single, returned = ([_holds(row, row["prediction"]) for row in own[method]] for method in (ONE_PASS, LOOP))
        means = [number(fmean(side)) for side in (single, drafted, returned)]
        rows.append((label, str(len(single)), *means, _gain(single, returned, exact=True)))
    head = ("", "n", "one pass, %", "first draft, %", "`metarag`, %", "gain over one pass")
    return Table(name="contained", title="Answers that contain the gold answer", head=head, rows=rows)


def _holds(row: Row, prediction: str | None) -> float:
    return 100.0 * contains_answer(prediction or "", [row["gold"], *row["aliases"]])


def types(recorded: Sequence[Recorded]) -> Table:
    """F1 by the question types of the pooled data sets."""
    rows: list[Cells] = []
    for one in (one for one in recorded if one.dataset in POOLED):
        ids = [row["id"] for row in one.rows[ONE_PASS]]
        alone = dict(zip(ids, _percent(one.rows[ONE_PASS], "f1"), strict=True))
        by_type: dict[str, list[Row]] = {}
        for row in one.rows[LOOP]:
            by_type.setdefault(row["type"] or "", []).append(row)
        for kind, own in sorted(by_type.items()):
            if kind:
                before, after = fmean(alone[row["id"]] for row in own), fmean(_percent(own, "f1"))
                rows.append((one.label, kind, str(len(own)), number(before), number(after), f"{after - before:+.1f}"))
    head = ("", "type", "n", "one pass, F1", "`metarag`, F1", "gain")
    return Table(name="types", title="F1 by question type", head=head, rows=rows)


def changed(recorded: Sequence[Recorded]) -> Table:
    """How many wrong answers were fixed and right ones lost, of one pass and of first drafts."""
    own = _together(recorded).rows
    ends = [_right(row) for row in own[LOOP]]
    starts = {
        "one-pass answers": [_right(row) for row in own[ONE_PASS]],
        "first drafts": [bool(row["rounds"]) and _right(row["rounds"][0]) for row in own[LOOP]],
    }
    rows = []
    for name, was in starts.items():
        cells: list[str] = []
        for right in (False, True):
            after = [end for before, end in zip(was, ends, strict=True) if before is right]
            cells += [str(len(after)), *_share(after.count(not right), len(after), digits=1)]
        rows.append((name, *cells))
    head = ("", "wrong", "fixed", "% [95 %]", "right", "lost", "% [95 %]")
    return Table(name="changed", title="Wrong answers fixed and right answers lost", head=head, rows=rows)


def _right(scored: Row) -> bool:
    """Whether an answer or a draft is right, by its F1."""
    return float(scored["f1"] or 0.0) >= RIGHT


def _share(part: int, whole: int, *, digits: int) -> Cells:
    """A count, and its percentage of `whole` with the exact interval."""
    low, high = (100 * end for end in binomial_interval(part, whole))
    return (str(part), f"{100 * part / whole:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]")


def named(recorded: Sequence[Recorded]) -> Table:
    """How often each deficit was diagnosed, and how its repair changed the F1 of first drafts."""
    rows = _together(recorded).rows[LOOP]
    diagnoses = [one["diagnosis"]["deficit"] for row in rows for one in row["rounds"] if one["diagnosis"]]
    counts = Counter(name for name in diagnoses if name != NO_DEFICIT)
    cells = []
    for name, n in sorted(counts.items()):
        own = [row for row in rows if len(row["rounds"]) > 1 and row["rounds"][1]["plan"]["deficit"] == name]
        ends = ([row["rounds"][0] for row in own], own)
        means = (number(fmean(_percent(side, "f1")) if side else None) for side in ends)
        cells.append((f"`{name}`", str(n), f"{100 * n / counts.total():.0f} %", str(len(own)), *means))
    head = ("deficit", "diagnoses", "share", "of first drafts", "F1 of first draft", "F1 of returned answer")
    return Table(name="named", title="Deficits and their repairs", head=head, rows=cells)


def critics(_: Sequence[Recorded]) -> Table:
    """First diagnoses by rules over the facts and by the model as critic, against those that the data imply."""
    asked = _together(records("diagnosis"))
    arms, quadrants = asked.recording.arms, asked.recording.quadrants
    material = Material(arms=arms, rows=asked.rows, n=len(asked.rows[arms[0].name]), seed=SEED, quadrants=quadrants)
    rows = []
    for name, found in diagnosis.measure(material).items():
        counts = Counter({deficit: sum(meant.values()) for deficit, meant in found["confusion"].items()})
        rows.append(
            (
                f"`{name.rpartition(' ')[2]}`",
                str(found["compared"]),
                ", ".join(f"`{deficit}` {n}" for deficit, n in counts.most_common() if n),
                number(None if found["agreement"] is None else 100 * found["agreement"]),
                number(diagnosis.macro_f1(found["confusion"]), 2),
                *(number(fmean(_percent(asked.rows[name], score))) for score in ("em", "f1")),
            )
        )
    head = ("", "first diagnoses", "named", "% as the data imply", "macro F1", "EM", "F1")
    return Table(name="critics", title="Rules over the facts, and the model as critic", head=head, rows=rows)


def levels(recorded: Sequence[Recorded]) -> Table:
    """How often returned answers are right at each level of confidence."""
    found: dict[str, list[bool]] = {name: [] for name in LEVELS}
    for row in _together(recorded).rows[LOOP]:
        if row["rounds"]:
            found[level(row["rounds"][row["chosen"]]["p_correct"], calibrated=True)].append(_right(row))
    rows = [
        (f"`{name}`", str(len(right)), _share(sum(right), len(right), digits=0)[1]) for name, right in found.items()
    ]
    return Table(name="levels", title="Levels of confidence", head=("level", "n", "% right [95 %]"), rows=rows)


def cost(recorded: Sequence[Recorded]) -> Table:
    """Calls and tokens per question, and the share that the server's prefix cache served."""
    rows: list[Cells] = []
    for one in (*recorded, *records("open_domain")):
        for method in (ONE_PASS, LOOP):
            own = one.rows[method]
            later = [call for row in own for call in row["usage"][1:]]
            prompt, cached = (sum(call[name] for call in later) for name in ("prompt", "cache_hit"))
            tokens = (f"{fmean(row['tokens'][name] for row in own):,.0f}" for name in ("prompt", "completion"))
            calls, share = fmean(row["llm_calls"] for row in own), f"{100 * cached / prompt:.0f}" if prompt else "-"
            label = one.label if one.mode == "gold" else f"{one.label}, `{one.mode}`"
            rows.append((label, f"`{method}`", number(calls), *tokens, share))
    head = ("", "method", "calls", "prompt tokens", "completion tokens", "% cached after the first call")
    return Table(name="cost", title="Cost per question", head=head, rows=rows)


TABLES: Mapping[str, Callable[[Sequence[Recorded]], Table]] = {
    "quality": quality,
    "contained": contained,
    "baselines": baselines,
    "ablations": ablations,
    "open_domain": lambda _: quality(records("open_domain")),
    "open_domain_baselines": open_domain_baselines,
    "types": types,
    "changed": changed,
    "named": named,
    "critics": critics,
    "cost": cost,
    "levels": levels,
    "unseen": unseen,
    "unseen_sampling": unseen_sampling,
    "unseen_types": lambda _: types(records("unseen_describing")),
    "model_sizes": model_sizes,
}

if __name__ == "__main__":
    app()
