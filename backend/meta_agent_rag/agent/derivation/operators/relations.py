"""How the ends of two or more chains relate: the same, both true, what they share, how far apart."""

import re
from collections.abc import Sequence
from datetime import date

from ....grounding.answer_kind import kind_asked
from ....text.dates import Date, as_date, is_date
from ....text.figures import in_unit
from ....text.normalise import normalised
from ..derivation import Plan
from ..operator import Operand, Operator, Outcome, candidates, two_candidates, two_chains
from ..values import as_quantity, asks_yes_or_no, countries, same_value, verdict

_UNIT_ASKED = re.compile(r"\bhow\s+many\s+(?:\w+\s+)?(days?|weeks?|months?|decades?|centur(?:y|ies))\b", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:BC|BCE|AD|CE)\b|(?i:\bcentur(?:y|ies)\b|\b\d{3,4}s\b)")
"""Times that are not read as a date: an era, a century, a decade."""
_COUNTED = re.compile(r"\bhow\s+many\s+(?:(?:more|fewer|less)\s+)?((?:(?:square|cubic)\s+)?\w+)", re.IGNORECASE)
_SAME_TIME = re.compile(r"\bsame\s+(year|decade|century|month)\b", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:both|common|share[sd]?|same|mutual)\b|\band\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*(?:,|;|\band\b|&|/)\s*")


def _both(question: str, operands: Sequence[Operand]) -> Outcome | None:
    verdicts = [verdict(operand.value) for operand in operands]
    if any(one is None for one in verdicts):
        return None
    said = "; ".join(f"{operand.of}: {operand.value}" for operand in operands)
    return Outcome(answer="yes" if all(verdicts) else "no", because=said)


def _check_both(question: str, plan: Plan) -> str | None:
    return asks_yes_or_no(question)


def _common(question: str, operands: Sequence[Operand]) -> Outcome | None:
    first, *others = [[item for item in _SEPARATOR.split(operand.value) if item] for operand in operands]
    shared = [item for item in first if all(any(same_value(item, one) for one in other) for other in others)]
    if not shared:
        return None
    answer = ", ".join(shared)
    return Outcome(answer=answer, because=f"{' and '.join(operand.of for operand in operands)} share: {answer}")


def _check_common(question: str, plan: Plan) -> str | None:
    if asks_yes_or_no(question) is None:
        return "the question asks for a yes or no"
    if not _SHARED.search(question):
        return "the question does not ask what two things have in common"
    return two_chains(question, plan) or candidates(question, plan)


def _difference(question: str, operands: Sequence[Operand]) -> Outcome | None:
    one, other = operands[0].value, operands[1].value
    first, second = _dated(one), _dated(other)
    if first is not None and second is not None:
        unit = _UNIT_ASKED.search(question)
        answer = _apart(first, second, unit[1].lower()[:2] if unit else "")
        if answer is None:
            return None
    elif _VAGUE.search(one) or _VAGUE.search(other):
        return None
    else:
        left, right = as_quantity(one), as_quantity(other)
        if left is None or right is None:
            return None
        wanted = _COUNTED.search(question)
        unit_asked = as_quantity(f"1 {wanted[1]}") if wanted else None
        to = (unit_asked.unit if unit_asked and left.unit else "") or left.unit
        one_in, other_in = in_unit(left.number, left.unit, to), in_unit(right.number, right.unit, to)
        if one_in is None or other_in is None:
            return None
        apart = abs(one_in - other_in)
        answer = int(apart) if apart == int(apart) else round(apart, 4)  # type: ignore[assignment]
    return Outcome(answer=str(answer), because=f"between {one} and {other}: {answer}")


def _dated(value: str) -> Date | None:
    """The date of a value, unless its number is a quantity: "450 m" is no year."""
    quantity = None if is_date(value) else as_quantity(value)
    return as_date(value) if quantity is None or not quantity.unit else None


def _apart(first: Date, second: Date, unit: str) -> int | None:
    """The years between two dates, or the days, weeks, months, decades or centuries, by their first two letters.

    `None` if the dates are not precise enough, or the years not a whole number of these.
    """
    years = abs(first.year - second.year) - (first.year * second.year < 0)  # there is no year 0
    if (length := {"": 1, "de": 10, "ce": 100}.get(unit)) is not None:
        return None if years % length else years // length
    if not (first.month and second.month):
        return None
    if unit == "mo":
        return abs(12 * (first.year - second.year) + first.month - second.month)
    try:
        days = [date(one.year, one.month, one.day).toordinal() for one in (first, second)]
    except ValueError:
        return None
    apart = abs(days[0] - days[1])
    return apart if unit == "da" else apart // 7


def _check_difference(question: str, plan: Plan) -> str | None:
    if kind_asked(question) != "number":
        return "the question does not ask for a number"
    return two_chains(question, plan) or ("it relates two things, not more" if len(plan.chains) > 2 else None)


def _same(question: str, operands: Sequence[Operand]) -> Outcome | None:
    first, *others = operands
    dates = [date for operand in operands if (date := as_date(operand.value)) is not None]
    time = _SAME_TIME.search(question)
    if time is not None and len(dates) == len(operands):
        verdicts: list[bool | None] = [_at_once(dates, time[1].lower())]
    else:
        verdicts = [_alike(first.value, other.value) for other in others]
    if any(one is None for one in verdicts):
        return None
    values = " and ".join(operand.value for operand in operands)
    return Outcome(
        answer="yes" if all(verdicts) else "no", because=f"{values} are {'the same' if all(verdicts) else 'different'}"
    )


def _at_once(dates: Sequence[Date], period: str) -> bool | None:
    """Whether dates are in one period; `None` if they are not precise enough, or of an era whose periods differ."""
    if period == "month":
        return len({date.month for date in dates}) == 1 if all(date.month for date in dates) else None
    if period == "year":
        return len({date.year for date in dates}) == 1
    if any(date.year < 1 for date in dates):
        return None
    return len({date.year // 10 if period == "decade" else (date.year - 1) // 100 for date in dates}) == 1


def _alike(one: str, other: str) -> bool | None:
    """Whether two values are the same; `None` for a yes or no, and for a name within another: York, New York."""
    if verdict(one) is not None or verdict(other) is not None:
        return None
    alike = same_value(one, other)
    same_words = normalised(one) == normalised(other) or (countries(one) and countries(other))
    return alike if not alike or same_words or as_date(one) or as_quantity(one) else None


def _check_same(question: str, plan: Plan) -> str | None:
    return two_chains(question, plan) or asks_yes_or_no(question)


OPERATOR = (
    Operator(
        name="both",
        when="the question asks, for a yes or no, whether one thing is true of everything that it names",
        combine=_both,
        check=_check_both,
        examples=(
            (
                "Are both Tern Island and Port Rees in Norway?",
                two_candidates("both", "Tern Island", "Port Rees", "Is NAME in Norway?"),
            ),
        ),
    ),
    Operator(
        name="common",
        when="the question asks what two things have in common",
        combine=_common,
        check=_check_common,
        examples=(
            (
                "What profession do Mary Stone and Paul Reed share?",
                two_candidates("common", "Mary Stone", "Paul Reed", "What are the professions of NAME?"),
            ),
        ),
    ),
    Operator(
        name="difference",
        when="the question asks how many years lie between two things, or how many more one has",
        combine=_difference,
        check=_check_difference,
        compares=True,
        examples=(
            (
                "How many years after Ann Bode was Karl Lutz born?",
                two_candidates("difference", "Ann Bode", "Karl Lutz", "When was NAME born?"),
            ),
        ),
    ),
    Operator(
        name="same",
        when="the question asks, for a yes or no, whether two things have something in common",
        combine=_same,
        check=_check_same,
        compares=True,
        examples=(
            (
                "Do the bands Red Moth and The Vales come from the same country?",
                two_candidates("same", "Red Moth", "The Vales", "Which country is the band NAME from?"),
            ),
            (
                "Do director of film Blue Hill and director of film Grey Water have the same nationality?",
                two_candidates(
                    "same", "Blue Hill", "Grey Water", "Who directed the film NAME?", "What is the nationality of #?"
                ),
            ),
        ),
    ),
)
