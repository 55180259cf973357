"""Calculations written as text, such as "2 * £34 + 3 * £12 = £104", read with their figures and evaluated."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .figure import CLOCK, Figure
from .reading import figures, in_digits

_LONGEST = 200
_PLAIN = str.maketrans(
    "\uff08\uff09\uff1d\uff0b\uff0d\uff05\uff1a[]{}X\u22c5\u2715\u2217\u21d2", "()=+-%:()()x\u00b7\u00d7*="
)
_STEPS = re.compile(r"[;\n\uff1b\uff0c]|,\s+(?=[^,=]*[-+*\u00d7\u00f7\u00b7/x\u2212][^,=]*=)")
_SIGNS = MappingProxyType(
    {"\u00d7": "*", "\u00b7": "*", "x": "*", "\u00f7": "/", ":": "/", "\u2212": "-", "\u2013": "-"}
)
_SPLIT = re.compile(
    r"([+*\u00d7\u00f7\u00b7\u2212()])"
    r"|(?<=[\s\d%)])([-\u2013/x])(?=[\s\d($\u00a3\u20ac\u00a5])"  # not in "km/h" or "Monday-Friday"
    r"|(?<=\s)(:)(?=\s)"  # not in 19:30
)
_LABEL = re.compile(r"^\s*\d\)\s+|^[^=:]*[^\W\d_][^=:]*(?<!\s):\s+(?=.*\d)")
_REMARK = re.compile(r"\([^()\d]*\)|(?<=\d)\s?\((?=[^()]*[^\W\d_]{3})(?:(?!\s-\s)[^()+*\u00d7/\u00f7\u2212])*\)")
_SHARE_OF = re.compile(r"(?<=%)\s+(?:of|von|de|di|do|da|van)\s+(?=\D?\d)")
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)


@dataclass(frozen=True, kw_only=True)
class Calculation:
    """Figures and the signs between them, in order; `results` are the figures written after "="."""

    parts: tuple[Figure | str, ...]
    results: tuple[Figure, ...]

    @property
    def operands(self) -> tuple[Figure, ...]:
        """Its figures in order."""
        return tuple(part for part in self.parts if isinstance(part, Figure))

    @property
    def written(self) -> str:
        """What is calculated, without the result."""
        shown = " ".join(part.written if isinstance(part, Figure) else _shown(part) for part in self.parts)
        return shown.replace("( ", "(").replace(" )", ")")

    @property
    def is_sum(self) -> bool:
        """Does it only add and subtract?"""
        return "*" not in self.parts and not self.divides

    @property
    def is_product(self) -> bool:
        """Does it only multiply and divide?"""
        return {"+", "-"}.isdisjoint(part for part in self.parts if isinstance(part, str))

    @property
    def divides(self) -> bool:
        """Does it divide?"""
        return "/" in self.parts

    def adds(self, operand: Figure) -> bool:
        """Is this operand added or subtracted, and neither multiplied nor divided by anything?"""
        place = next(number for number, part in enumerate(self.parts) if part is operand)
        return {"*", "/"}.isdisjoint(
            part for part in self.parts[max(place - 1, 0) : place + 2] if isinstance(part, str)
        )

    @property
    def without_last(self) -> "Calculation":
        """The calculation without its last figure and the sign before it."""
        return Calculation(parts=self.parts[:-2], results=())

    def value(self, numbers: Sequence[float]) -> float | None:
        """What it gives with these numbers in place of its figures; `None` if nothing."""
        given = iter(numbers)
        text = "".join(f"({next(given)!r})" if isinstance(part, Figure) else part for part in self.parts)
        try:
            return _evaluated(ast.parse(text, mode="eval").body)
        except (ArithmeticError, SyntaxError):
            return None


def calculations(text: str, language: str = "") -> tuple[Calculation, ...]:
    """The calculations in a text, separated by semicolons, lines or commas; what is none is left out.

    >>> [one] = calculations("2 x 34 + 3 x 12 = 104", "en")
    >>> [figure.number for figure in one.operands], one.value([2.0, 34.0, 3.0, 12.0])
    ([2.0, 34.0, 3.0, 12.0], 104.0)
    """
    return tuple(_read(text, language))


def _read(text: str, language: str) -> Iterator[Calculation]:
    for line in _STEPS.split(text):
        if len(line) > _LONGEST:
            continue
        plain = line.translate(_PLAIN).replace("=>", "=").replace("->", "=")
        sides = re.split(r"[=\u2248\u2192]", _REMARK.sub("", _LABEL.sub("", plain)))
        read = [_parts(_SHARE_OF.sub(" \u00d7 ", side), language) for side in sides]
        results = tuple(found for side in sides if (found := _figure(side, language)))
        # of "A = B", each may be the one whose numbers are known
        yield from (Calculation(parts=parts, results=results) for parts in read if parts is not None)


def _parts(text: str, language: str) -> tuple[Figure | str, ...] | None:
    """The figures and signs of a calculation; `None` if it has fewer than two figures or something else."""
    found: list[Figure | str] = []
    for piece in filter(None, map(str.strip, filter(None, _SPLIT.split(text)))):
        if piece in "+-*/()" or piece in _SIGNS:
            found.append(_SIGNS.get(piece, piece))
        elif (figure := _figure(piece, language)) is not None:
            found.append(figure)
        elif (between := _between(piece, language)) is not None:
            found += ["(", between[1], "-", between[0], ")"]
        elif any(map(str.isdigit, piece)):
            return None
        elif found and found[-1] == "/":
            found.pop()  # "12 € / night": the name of a rate
    return tuple(found) if sum(isinstance(part, Figure) for part in found) > 1 else None


def _figure(text: str, language: str) -> Figure | None:
    """The only figure of a text."""
    found = figures(in_digits(text.strip(), language), language)
    return found[0] if len(found) == 1 else None


def _between(text: str, language: str) -> tuple[Figure, ...] | None:
    """The times of day in "from 13.00 to 18.30"."""
    found = figures(in_digits(text.strip(), language), language)
    units = [one.unit for one in found]
    return found if len(found) == 2 and CLOCK in units and {CLOCK, "hour"}.issuperset(units) else None


def _shown(sign: str) -> str:
    return {"*": "\u00d7", "-": "\u2212"}.get(sign, sign)


def _evaluated(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_evaluated(inner)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_evaluated(left), _evaluated(right))
    raise SyntaxError("Not a calculation.")
