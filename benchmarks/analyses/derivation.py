"""Derivations against the data set's own facts: which stage goes wrong, and what it costs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.derivation.derivation import Chain, Plan
from meta_agent_rag.agent.derivation.operator import Operators, discover_operators

from ..rows.decomposition import GoldChains, follows, gives, gold_chains, pairs, says
from ..tables import Table, number, percent
from .analysis import Analysis, Figures, Material, Row, share

STAGES = ("no plan", "plan", "operator", "open fact", "wrong fact", "conclusion", "derived")
"""Where a derivation first goes wrong, in order; `derived` means that it gives the gold answer."""


def measure(material: Material) -> dict[str, Figures]:
    """Shares of right plans, facts and operators, and the F1 points lost at each stage, for arms with derivations."""
    operators = discover_operators()
    measured: dict[str, Figures] = {}
    for arm in material.looping():
        rows = [row for row in material.answered(arm) if row.get("gold_facts") and derivation_of(row) is not None]
        if rows:
            measured[arm.name] = _figures(rows, operators)
    return measured


def derivation_of(row: Row) -> Mapping[str, Any] | None:
    """The last derivation of a row, including what its repairs found."""
    found = (round_.get("derivation") for round_ in reversed(row["rounds"]))
    return next((one for one in found if one is not None), None)


def _figures(rows: Sequence[Row], operators: Operators) -> dict[str, Any]:
    judged = [judge(row, operators) for row in rows]
    planned = [one for one in judged if one["stage"] != "no plan"]
    right = [one for one in planned if one["stage"] not in ("plan", "operator")]
    facts = Counter[str]()
    for one in judged:
        facts.update(one["facts"])
    lost = Counter[str]()
    for row, one in zip(rows, judged, strict=True):
        lost[one["stage"]] += 100.0 * (1.0 - row["f1"]) / len(rows)
    counts = Counter(one["stage"] for one in judged)
    return {
        "n": len(rows),
        "planned": share(len(planned), len(rows)),
        "plan_right": share(len(right), len(planned)),
        "operator_right": share(sum(one["operator"] for one in planned), len(planned)),
        "facts": facts.total(),
        "facts_right": share(facts["right"], facts.total()),
        "facts_right_where_asked": share(facts["right"], facts["right"] + facts["wrong"] + facts["open"]),
        "derived_right": share(counts["derived"], len(rows)),
        "stages": {stage: {"n": counts[stage], "f1_lost": round(lost[stage], 2)} for stage in STAGES},
    }


def judge(row: Row, operators: Operators) -> dict[str, Any]:
    """The first stage of a row's derivation that goes wrong; whether its operator fits; and each gold fact's outcome.

    A gold fact is `right` if a look-up gave its value, `open` or `wrong` if the plan asked for it and did not get it,
    else `unasked`.
    """
    derivation = derivation_of(row)
    assert derivation is not None
    chains = gold_chains(row["gold_facts"])
    plan = _plan(derivation["plan"])
    outcomes = _outcomes(plan, derivation, chains)
    fits = plan is not None and gives(plan, row["question"], row["gold"], chains, operators)
    return {"stage": _stage(plan, derivation, row, chains, outcomes, fits=fits), "operator": fits, "facts": outcomes}


def _plan(held: Mapping[str, Any] | None) -> Plan | None:
    if held is None:
        return None
    chains = (Chain(of=chain["of"], facts=tuple(chain["facts"])) for chain in held["chains"])
    return Plan(operator=held["operator"], chains=tuple(chains))


def _stage(
    plan: Plan | None,
    derivation: Mapping[str, Any],
    row: Row,
    chains: GoldChains,
    outcomes: Sequence[str],
    *,
    fits: bool,
) -> str:
    if plan is None:
        return "no plan"
    if says(derivation["answer"], row["gold"]):
        return "derived"
    matched = pairs(plan, chains)
    if matched is None or not all(follows(chain, gold) for chain, gold in matched):
        return "plan"
    if not fits:
        return "operator"
    if "open" in outcomes:
        return "open fact"
    return "conclusion" if all(outcome == "right" for outcome in outcomes) else "wrong fact"


def _outcomes(plan: Plan | None, derivation: Mapping[str, Any], chains: GoldChains) -> list[str]:
    """The outcome of every gold fact, chain by chain."""
    matched = pairs(plan, chains) if plan is not None else None
    found: list[str] = []
    for place, gold in enumerate(chains):
        asked: Sequence[Mapping[str, Any]] = ()
        if plan is not None and matched is not None:
            own = next(chain for chain, meant in matched if meant is gold)
            asked = [fact for fact in derivation["facts"] if fact["chain"] == plan.chains.index(own)]
        elif plan is not None:
            asked = [fact for fact in derivation["facts"] if fact["chain"] == place]
        for index, fact in enumerate(gold):
            looked_up = next((one for one in asked if one["index"] == index), None)
            found.append(_outcome(fact.value, looked_up))
    return found


def _outcome(value: str, looked_up: Mapping[str, Any] | None) -> str:
    if looked_up is None:
        return "unasked"
    if says(looked_up["value"], value):
        return "right"
    return "wrong" if looked_up["open"] is None else "open"


def tables(figures: Figures) -> Sequence[Table]:
    """One row per method, and the points lost at each stage."""
    head = ("method", "n", "planned", "plan right", "operator right", "gold facts found", "of those asked", "derived")
    keys = ("planned", "plan_right", "operator_right", "facts_right", "facts_right_where_asked", "derived_right")
    right = [(method, str(one["n"]), *(percent(one[key]) for key in keys)) for method, one in figures.items()]
    lost = [
        (method, stage, str(one["stages"][stage]["n"]), number(one["stages"][stage]["f1_lost"]))
        for method, one in figures.items()
        for stage in STAGES
    ]
    return (
        Table(name="derivation", title="Derivations against the data set's own facts (percent)", head=head, rows=right),
        Table(
            name="derivation-budget",
            title="F1 points that the returned answers lose, by the stage at which the derivation first goes wrong",
            head=("method", "stage", "n", "F1 points lost"),
            rows=lost,
        ),
    )


ANALYSIS = Analysis(
    name="derivation",
    title="Derivations against gold decompositions",
    about=(
        "2WikiMultiHopQA's evidences and MuSiQue's decompositions give the single facts of a question.",
        "A plan is right if its chains ask for these facts, one by one,",
        "and its operator gives the gold answer when applied to their gold values.",
        "A plan that needs fewer facts, or others, counts as wrong even if it leads to the answer.",
        "A gold fact is found if a look-up gave its value.",
    ),
    measure=measure,
    tables=tables,
    order=35,
)
