"""Derivations against the data set's own facts: which stage goes wrong, and what it costs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from meta_agent_rag.agent.derivation.derivation import Chain, Plan, references, resolved
from meta_agent_rag.agent.derivation.look_up import names
from meta_agent_rag.agent.derivation.operator import Operand, Operators, discover_operators
from meta_agent_rag.agent.derivation.values import same_value
from meta_agent_rag.text.names import content_words, spaced, unqualified

from ..metrics import score_answer
from ..tables import Table, number, percent
from .analysis import Analysis, Figures, Material, Row, share

STAGES = ("no plan", "plan", "operator", "open fact", "wrong fact", "conclusion", "derived")
"""Where a derivation first goes wrong, in order; `derived` means that it gives the gold answer."""
_STEM = 5
"""Number of initial letters by which two words count as the same: "director" and "directed"."""
_SHARED = 1 / 3
"""Share of a relation's words that a fact must contain to ask for it."""


@dataclass(frozen=True, kw_only=True)
class GoldFact:
    """A single fact of the data set; MuSiQue's free-text questions have no `subject` and serve as `relation`."""

    subject: str
    relation: str
    value: str


GoldChains = tuple[tuple[GoldFact, ...], ...]


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
    matched = paired(plan, chains)
    if matched is None or not all(follows(chain, gold) for chain, gold in matched):
        return "plan"
    if not fits:
        return "operator"
    if "open" in outcomes:
        return "open fact"
    return "conclusion" if all(outcome == "right" for outcome in outcomes) else "wrong fact"


def _outcomes(plan: Plan | None, derivation: Mapping[str, Any], chains: GoldChains) -> list[str]:
    """The outcome of every gold fact, chain by chain."""
    matched = paired(plan, chains) if plan is not None else None
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


def gold_chains(facts: Iterable[Sequence[str]]) -> GoldChains:
    """The facts as chains: a fact whose subject ends a chain continues it; free-text questions form one chain.

    Several values of one relation count as one fact.
    """
    values: dict[tuple[str, str], list[str]] = {}
    for subject, relation, value in facts:
        values.setdefault((subject, relation), []).append(value)
    chains: list[list[GoldFact]] = []
    for (subject, relation), held in values.items():
        fact = GoldFact(subject=subject, relation=relation, value=", ".join(held))
        chain = next((chain for chain in chains if not subject or names(subject, chain[-1].value)), None)
        if chain is None:
            chains.append(chain := [])
        chain.append(fact)
    return tuple(tuple(chain) for chain in chains)


def gives(plan: Plan, question: str, answer: str, chains: GoldChains, operators: Operators) -> bool:
    """Return whether a plan's operator, applied to the gold values, gives the gold answer."""
    operator = operators.get(plan.operator)
    if operator is None or operator.check(question, plan) is not None:
        return False
    ordered = paired(plan, chains) or tuple(zip(plan.chains, chains, strict=False))
    if not len(ordered) == len(chains) == len(plan.chains):
        return False
    operands = [
        Operand(of=chain.of, value=gold[-1].value, values=tuple(fact.value for fact in gold)) for chain, gold in ordered
    ]
    outcome = operator.combine(question, operands)
    return outcome is not None and says(outcome.answer, answer)


def says(said: str, meant: str) -> bool:
    """Return whether two values agree as dates, numbers or countries, or in most of their words."""
    return bool(same_value(said, meant)) or score_answer(said, (meant,)).f1 >= 0.5


def paired(plan: Plan, chains: GoldChains) -> tuple[tuple[Chain, tuple[GoldFact, ...]], ...] | None:
    """The plan's chains, each paired with the gold chain that starts like it; `None` if they do not correspond."""
    left, found = list(chains), []
    if len(plan.chains) != len(chains):
        return None
    for chain in plan.chains:
        match = next((gold for gold in left if begins_alike(chain, gold[0])), None)
        if match is None:
            return None
        left.remove(match)
        found.append((chain, match))
    return tuple(found)


def begins_alike(chain: Chain, first: GoldFact) -> bool:
    """Return whether the first fact of a chain names what the first gold fact is about."""
    held = spaced(f"{chain.of} {chain.facts[0]}")
    return any(f" {word} " in held for word in content_words(unqualified(first.subject or first.relation)))


def asks_for(fact: str, gold: GoldFact) -> bool:
    """Return whether a fact of a plan asks for the relation of a gold fact."""
    pattern = _relations().get(gold.relation.lower())
    if pattern is not None:
        return pattern.search(fact.lower()) is not None
    stems = {word[:_STEM] for word in content_words(fact)}
    wanted = [word[:_STEM] for word in content_words(gold.relation)]
    return sum(word in stems for word in wanted) >= _SHARED * len(wanted)


@cache
def _relations() -> Mapping[str, re.Pattern[str]]:
    text = files(__package__).joinpath("relations.yaml").read_text(encoding="utf-8")
    return {name: re.compile(pattern) for name, pattern in yaml.safe_load(text).items()}


def follows(chain: Chain, gold: Sequence[GoldFact]) -> bool:
    """Return whether a chain asks for the gold facts, one by one, each about the values of the previous ones."""
    if len(chain.facts) != len(gold):
        return False
    values = {index: fact.value for index, fact in enumerate(gold)}
    for index, (fact, meant) in enumerate(zip(chain.facts, gold, strict=True)):
        used = references(fact, index)
        if bool(used) != bool(index) or not asks_for(resolved(fact, index, values), meant):
            return False
    return True


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
