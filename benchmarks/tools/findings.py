"""Generate the tables of the findings and the README, and the figures of the demo, from `benchmarks/results`.

    python -m benchmarks.tools.findings docs/findings.md README.md

A table is placed between `<!-- table: NAME -->` and `<!-- /table -->`. NAME is one of `TABLES`, or a table of an
analysis, computed over the `gold` answers of the pooled data sets, or, written NAME@DATASET, over one data set.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from meta_agent_rag.agent.state import NO_DEFICIT
from meta_agent_rag.cli.shared.command import reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.grounding.confidence import LEVELS, level
from meta_agent_rag.statistics.paired import mcnemar_exact, paired_difference, permutation_p

from ..analyses import diagnosis, discover_analyses, losses
from ..analyses.analysis import Material, Row
from ..metrics import contains_answer
from ..statistics import binomial_interval
from ..tables import Cells, Table, as_markdown, number, p_words, signed
from .recorded import POOLED, RESULTS, Recorded, records

ONE_PASS, LOOP = "standard_rag", "metarag"
_BOTH = (ONE_PASS, LOOP)
_WITHOUT = f"{LOOP} LOOP_WITHOUT="
_WHOLE = f"{_WITHOUT}none"
SEED = 42
HELD_OUT = Path(__file__).parents[1] / "recorded" / "held_out.json"
"""The held-out result of each data set, which the demo opens with."""
_TABLE = re.compile(r"(<!-- table: ([\w@-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)

app = typer.Typer(add_completion=False)


@app.command()
@reporting
def main(
    documents: Annotated[list[Path], typer.Argument(help="Markdown files with marked tables.")],
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Regenerate every marked table, and `recorded/held_out.json`; identical records give identical files."""
    HELD_OUT.write_text(json.dumps(held_out(records()), indent=1) + "\n", encoding="utf-8")
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
    """The tables of every single-method analysis, over the loop's `gold` answers to some data sets.

    Raises `InputError` if none of them is recorded.
    """
    gold = [one for one in records() if one.mode == "gold" and one.dataset in names]
    if not gold:
        raise InputError(f"No record in {str(RESULTS)!r} covers {' or '.join(names)} in gold mode.")
    rows = [row for one in gold for row in one.rows[LOOP]]
    first = gold[0].recording
    material = Material(
        arms=tuple(arm for arm in first.arms if arm.name == LOOP),
        rows={LOOP: sorted(rows, key=lambda row: row["id"])},
        n=len(rows),
        seed=SEED,
        quadrants=first.quadrants,
        tariffs=first.tariffs,
    )
    analyses = (one for one in discover_analyses() if not one.across)
    return tuple(table for one in analyses for table in one.tables(one.measure(material)))


def quality(recorded: Sequence[Recorded]) -> Table:
    """One pass against the loop, by data set and pooled."""
    head = (*_head("one pass"), "calls: one pass, loop")
    return Table(name="quality", title="One pass against the loop", head=head, rows=_compared(recorded, ONE_PASS))


def baselines(recorded: Sequence[Recorded]) -> Table:
    """Every other method against the loop, in runs that have them all."""
    asked = _pooled(records("one_machine"))
    names = dict.fromkeys(name for one in asked for name in one.rows if name != LOOP)
    rows = [_beside(f"`{name}`", [one for one in asked if name in one.rows], name) for name in names]
    rows.append(_beside(f"`{LOOP}`", [one for one in asked if ONE_PASS in one.rows], LOOP))
    head = ("method", *_BESIDE, "calls")
    return Table(name="baselines", title="Every method against the loop", head=head, rows=rows)


def open_domain(_: Sequence[Recorded]) -> Table:
    """One pass against the loop over a whole corpus."""
    head = (*_head("one pass"), "calls: one pass, loop")
    rows = _compared(records("open_domain"), ONE_PASS)
    return Table(name="open_domain", title="One pass against the loop, open domain", head=head, rows=rows)


def open_domain_baselines(_: Sequence[Recorded]) -> Table:
    """The methods that search for themselves against one pass over a whole corpus."""
    rows: list[Cells] = []
    for one in records("open_domain_baselines"):
        for name in (name for name in one.rows if name != ONE_PASS):
            rows.append(_quality(f"`{name}`", [replace(one, rows={**one.rows, LOOP: one.rows[name]})], ONE_PASS))
    head = ("method", "n", "one pass, EM", "F1", "method, EM", "F1", "gain in EM", "gain in F1")
    return Table(name="open_domain_baselines", title="Searching methods against one pass", head=head, rows=rows)


def ablations(_: Sequence[Recorded]) -> Table:
    """Ablations: the loop without each part against the whole loop of the same run."""
    asked = [replace(one, rows={**one.rows, LOOP: one.rows[_WHOLE]}) for one in _pooled(records("ablations"))]
    names = dict.fromkeys(name for one in asked for name in one.rows if name not in (_WHOLE, LOOP))
    rows = [
        _beside(f"`{name.removeprefix(_WITHOUT)}`", [one for one in asked if name in one.rows], name) for name in names
    ]
    head = ("without", *_BESIDE, "calls")
    return Table(name="ablations", title="What each part of the loop gains", head=head, rows=rows)


_BESIDE = ("HotpotQA, F1", "loop gains", "2WikiMultiHopQA, F1", "loop gains", "both, EM", "F1", "loop gains")


def _beside(label: str, own: Sequence[Recorded], method: str) -> Cells:
    """F1 of a method, and what the loop gains over it: on each pooled data set, and on both together."""
    cells = [label]
    for some in (*([one] for one in own), own):
        _, _, em, f1, _, _, _, gain = _quality("", some, method)
        cells += [*([em] if len(some) > 1 else []), f1, "" if method == LOOP else gain]
    return (*cells, _calls(own, method).partition(",")[0])


def _calls(recorded: Sequence[Recorded], method: str) -> str:
    means = []
    for name in (method, LOOP):
        calls = [row["llm_calls"] for one in recorded for row in one.rows[name]]
        means.append(number(sum(calls) / len(calls)))
    return ", ".join(means)


def _pooled(recorded: Sequence[Recorded]) -> list[Recorded]:
    return [one for one in recorded if one.mode == "gold" and one.dataset in POOLED]


def _head(reference: str) -> Cells:
    return ("", "n", f"{reference}, EM", "F1", "`metarag`, EM", "F1", "gain in EM", "gain in F1")


def _compared(recorded: Sequence[Recorded], reference: str) -> list[Cells]:
    """A row for each record, and one for the pooled data sets."""
    named = [(f"{one.label}, `{one.mode}`", [one]) for one in recorded]
    pooled = _pooled(recorded)
    if len(pooled) > 1:
        named.insert(len(pooled), (f"**{' and '.join(one.label for one in pooled)}**", pooled))
    return [(*_quality(label, some, reference), _calls(some, reference)) for label, some in named]


def _quality(label: str, recorded: Sequence[Recorded], reference: str) -> Cells:
    one, other = (_scores(recorded, method) for method in (reference, LOOP))
    n = len(one)
    pairs = list(zip(one, other, strict=True))
    gains = {
        "em": mcnemar_exact(sum(a["em"] > b["em"] for a, b in pairs), sum(b["em"] > a["em"] for a, b in pairs)),
        "f1": permutation_p([row["f1"] for row in one], [row["f1"] for row in other], seed=SEED),
    }
    means = [number(sum(row[score] for row in rows) / n) for rows in (one, other) for score in ("em", "f1")]
    return (label, str(n), *means, *(_gain(one, other, score, p) for score, p in gains.items()))


def held_out(recorded: Sequence[Recorded]) -> list[dict[str, Any]]:
    """F1 of one pass and of the loop on each data set in `gold` mode, and their paired difference with its interval."""
    found = []
    for one in (one for one in recorded if one.mode == "gold"):
        alone, loop = ([row["f1"] for row in _scores([one], method)] for method in _BOTH)
        gain = paired_difference(alone, loop, seed=SEED)
        figures = {
            "one_pass": sum(alone) / len(alone),
            "loop": sum(loop) / len(loop),
            "gain": gain.mean,
            "low": gain.low,
            "high": gain.high,
        }
        rounded = {name: round(value, 4) for name, value in figures.items()}
        found.append(
            {"dataset": one.label, "n": len(loop), **rounded, "p": round(permutation_p(alone, loop, seed=SEED), 4)}
        )
    return found


def contained(recorded: Sequence[Recorded]) -> Table:
    """How often an answer contains the gold answer, however long it is: one pass, first draft and returned answer."""
    rows: list[Cells] = []
    parts = [(one.label, [one]) for one in recorded if one.mode == "gold"]
    parts.insert(len(POOLED), ("**both**", _pooled(recorded)))
    for label, some in parts:
        single = [_holds(row, row["prediction"]) for one in some for row in one.rows[ONE_PASS]]
        loop = [row for one in some for row in one.rows[LOOP]]
        drafted = [_holds(row, row["rounds"][0]["draft"]["short_answer"] if row["rounds"] else "") for row in loop]
        returned = [_holds(row, row["prediction"]) for row in loop]
        pairs = list(zip(single, returned, strict=True))
        p = mcnemar_exact(pairs.count((1.0, 0.0)), pairs.count((0.0, 1.0)))
        found = paired_difference([100 * one for one in single], [100 * one for one in returned], seed=SEED)
        means = [number(100 * sum(side) / len(side)) for side in (single, drafted, returned)]
        gain = f"{signed(found.mean, (found.low, found.high))}, {p_words(p)}"
        rows.append((label, str(len(loop)), *means, gain))
    head = ("", "n", "one pass, %", "first draft, %", "`metarag`, %", "gain over one pass")
    return Table(name="contained", title="Answers that contain the gold answer", head=head, rows=rows)


def _holds(row: Row, prediction: str | None) -> float:
    return float(contains_answer(prediction or "", [row["gold"], *row["aliases"]]))


def _gain(one: Sequence[Row], other: Sequence[Row], score: str, p: float) -> str:
    found = paired_difference([row[score] for row in one], [row[score] for row in other], seed=SEED)
    return f"{signed(found.mean, (found.low, found.high))}, {p_words(p)}"


def _scores(recorded: Iterable[Recorded], method: str) -> list[Row]:
    """EM and F1 in percent for each question; a failed question scores 0."""
    return [
        {score: 100.0 * (row[score] or 0.0) for score in ("em", "f1")} for one in recorded for row in one.rows[method]
    ]


def types(recorded: Sequence[Recorded]) -> Table:
    """F1 by the question types of the pooled data sets."""
    rows: list[Cells] = []
    for one in (one for one in recorded if one.dataset in POOLED):
        kinds = {row["id"]: row["type"] or "" for row in one.rows[LOOP]}
        scores = {method: {row["id"]: 100.0 * (row["f1"] or 0.0) for row in one.rows[method]} for method in _BOTH}
        for kind in sorted(set(kinds.values()) - {""}):
            ids = [id_ for id_, own in kinds.items() if own == kind]
            means = [sum(scores[method][id_] for id_ in ids) / len(ids) for method in _BOTH]
            rows.append((one.label, kind, str(len(ids)), *map(number, means), f"{means[1] - means[0]:+.1f}"))
    head = ("", "type", "n", "one pass, F1", "`metarag`, F1", "gain")
    return Table(name="types", title="F1 by question type", head=head, rows=rows)


def changed(recorded: Sequence[Recorded]) -> Table:
    """How many wrong answers were fixed and right ones lost, of one pass and of first drafts."""
    gold = _pooled(recorded)
    ends = [losses.is_right(row) for one in gold for row in one.rows[LOOP]]
    starts = {
        "one-pass answers": [losses.is_right(row) for one in gold for row in one.rows[ONE_PASS]],
        "first drafts": [
            losses.is_right(row["rounds"][0]) if row["rounds"] else False for o in gold for row in o.rows[LOOP]
        ],
    }
    rows = [(name, *_share(was, ends, False), *_share(was, ends, True)) for name, was in starts.items()]
    head = ("", "wrong", "fixed", "% [95 %]", "right", "lost", "% [95 %]")
    return Table(name="changed", title="Wrong answers fixed and right answers lost", head=head, rows=rows)


def _share(was: Sequence[bool], is_: Sequence[bool], right: bool) -> Cells:
    ends = [after for before, after in zip(was, is_, strict=True) if before is right]
    turned = ends.count(not right)
    low, high = binomial_interval(turned, len(ends))
    return (str(len(ends)), str(turned), f"{100 * turned / len(ends):.1f} [{100 * low:.1f}, {100 * high:.1f}]")


def named(recorded: Sequence[Recorded]) -> Table:
    """How often each deficit was diagnosed, and how its repair changed the F1 of first drafts."""
    rows = [row for one in _pooled(recorded) for row in one.rows[LOOP] if row["rounds"]]
    fired = [row for row in rows if len(row["rounds"]) > 1]
    diagnoses = [one["diagnosis"]["deficit"] for row in rows for one in row["rounds"] if one["diagnosis"]]
    counts = Counter(name for name in diagnoses if name != NO_DEFICIT)
    cells = []
    for name, n in sorted(counts.items()):
        own = [row for row in fired if row["rounds"][1]["plan"]["deficit"] == name]
        before, after = ([100 * one["f1"] for one in side] for side in ([row["rounds"][0] for row in own], own))
        share = f"{100 * n / counts.total():.0f} %"
        means = (number(fmean(side) if side else None) for side in (before, after))
        cells.append((f"`{name}`", str(n), share, str(len(own)), *means))
    head = ("deficit", "diagnoses", "share", "of first drafts", "F1 of first draft", "F1 of returned answer")
    return Table(name="named", title="Deficits and their repairs", head=head, rows=cells)


def critics(_: Sequence[Recorded]) -> Table:
    """First diagnoses by rules over the facts and by the model as critic, against those that the data imply."""
    asked = reduce(Recorded.with_those_of, _pooled(records("diagnosis")))
    arms, quadrants = asked.recording.arms, asked.recording.quadrants
    material = Material(arms=arms, rows=asked.rows, n=len(asked.rows[arms[0].name]), seed=SEED, quadrants=quadrants)
    rows = []
    for name, found in diagnosis.measure(material).items():
        counts = Counter({deficit: sum(meant.values()) for deficit, meant in found["confusion"].items()})
        returned = ([100 * row[score] for row in asked.rows[name]] for score in ("em", "f1"))
        rows.append(
            (
                f"`{name.rpartition(' ')[2]}`",
                str(found["compared"]),
                ", ".join(f"`{deficit}` {n}" for deficit, n in counts.most_common() if n),
                number(None if found["agreement"] is None else 100 * found["agreement"]),
                number(diagnosis.macro_f1(found["confusion"]), 2),
                *(number(fmean(scores)) for scores in returned),
            )
        )
    head = ("", "first diagnoses", "named", "% as the data imply", "macro F1", "EM", "F1")
    return Table(name="critics", title="Rules over the facts, and the model as critic", head=head, rows=rows)


def levels(recorded: Sequence[Recorded]) -> Table:
    """How often returned answers are right at each level of confidence."""
    ends = [row for one in _pooled(recorded) for row in one.rows[LOOP] if row["rounds"]]
    found: dict[str, list[bool]] = {name: [] for name in LEVELS}
    for row in ends:
        found[level(row["rounds"][row["chosen"]]["p_correct"], calibrated=True)].append(losses.is_right(row))
    rows = []
    for name, right in found.items():
        low, high = binomial_interval(sum(right), len(right))
        share = f"{100 * sum(right) / max(len(right), 1):.0f} [{100 * low:.0f}, {100 * high:.0f}]"
        rows.append((f"`{name}`", str(len(right)), share))
    return Table(name="levels", title="Levels of confidence", head=("level", "n", "% right [95 %]"), rows=rows)


def cost(recorded: Sequence[Recorded]) -> Table:
    """Calls and tokens per question, and the share that the server's prefix cache served."""
    runs = {"": recorded, ", `open_domain`": records("open_domain")}
    rows = [
        (f"{one.label}{kind}", f"`{method}`", *_cost(one.rows[method]))
        for kind, found in runs.items()
        for one in found
        for method in _BOTH
    ]
    head = ("", "method", "calls", "prompt tokens", "completion tokens", "% cached after the first call")
    return Table(name="cost", title="Cost per question", head=head, rows=rows)


def _cost(rows: Sequence[Row]) -> Cells:
    n = len(rows)
    later = [call for row in rows for call in row["usage"][1:]]
    prompt, cached = (sum(call[kind] for call in later) for kind in ("prompt", "cache_hit"))
    return (
        number(sum(row["llm_calls"] for row in rows) / n),
        *(f"{sum(row['tokens'][kind] for row in rows) / n:,.0f}" for kind in ("prompt", "completion")),
        f"{100 * cached / prompt:.0f}" if prompt else "-",
    )


TABLES: Mapping[str, Callable[[Sequence[Recorded]], Table]] = {
    "quality": quality,
    "contained": contained,
    "baselines": baselines,
    "ablations": ablations,
    "open_domain": open_domain,
    "open_domain_baselines": open_domain_baselines,
    "types": types,
    "changed": changed,
    "named": named,
    "critics": critics,
    "cost": cost,
    "levels": levels,
}

if __name__ == "__main__":
    app()
