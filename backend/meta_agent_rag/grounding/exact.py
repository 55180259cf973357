"""What code decides exactly about a claim: whether a passage says it in these words, and whether its figures occur.

A critic may write calculations for figures that follow from others: lines such as `2 * 34 + 3 * 12 = 104`, with dates
as `2021-07-12` and times as `19:30`, separated by semicolons. A calculation counts only if it is right, if its operands
occur in the passages, and if it says more than that a figure equals itself.
"""

import ast
import operator
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import islice, product
from math import isclose
from types import MappingProxyType

from ..retrieval.passage import Passage
from ..text.figures import FRACTION, with_decimals
from ..text.names import stop_words, words
from ..text.normalise import as_quoted
from ..text.sentences import sentences

_DENIALS = frozenset(
    {"not", "no", "never", "none", "nobody", "nothing", "few", "hardly", "without", "nor", "neither", "except", "only"}
    | {"but", "unless", "if", "prohibited", "aber", "aucun", "pero"}
    | {"nicht", "kein", "keine", "nie", "ohne", "ne", "pas", "sans", "jamais", "nunca", "sin", "non", "senza", "niet"}
    | {"minus", "geen", "nao", "sem", "inte", "ikke", "ingen", "ei", "nem"}
    | {"\u043d\u0435", "\u043d\u0435\u0442", "\u043d\u0438"}
)
"""Words that turn a statement round; a sentence with one that a claim lacks does not say the claim."""
_CONTRACTED = re.compile(r"(?<!\bca)n['\u2019]t\b|(?<=\bcan)(?:not|['\u2019]t)\b", re.IGNORECASE)
_DENIED = re.compile(
    "[\u4e0d\u6ca1\u6c92\u672a\u7121\u65e0\u975e]|\u306a\u3044|\u307e\u305b\u3093|\uc54a|\uc548 |\uc5c6|\uc544\ub2c8"
)
"""The same in Chinese, Japanese and Korean, within words."""
_ASKS = ("?", "\uff1f", "\u061f")
_DECIDES = _DENIALS | {"before", "after", "under", "over", "below", "above", "up", "down", "more", "most", "until"}
_SIGN = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IN_NUMBER = re.compile(r"(?<=\d)[.,:](?=\d)")
_BELOW_ZERO = re.compile(r"(?<![\w.,)])[-\u2212\u2013](?=\d)")
_WIDEST_GAP = 2
_FEWEST = 3
"""The number of words from which a claim states something without its question."""
_LEAST_ASKED = 0.2
_NAME = re.compile(r"(?<=\w )[A-Z\u00c0-\u00de][\w'\u2019-]+(?: [A-Z\u00c0-\u00de][\w'\u2019-]+)+")
_GERMAN = frozenset({"der", "die", "das", "und"})
"""A text with all of them writes every noun with a capital."""
_SAME_LANGUAGE = 0.4
"""The share of a claim's words in the passages from which both are taken to be in one language."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """Whether the passages support a claim.

    `number` and `passage_id` name the passage that does, and `also` others that are needed beside it; `words` are what
    decides, as the passages have it; `steps` the calculations of figures that follow from others; `missing` figures and
    names that the passages lack; `fault` says why it is unsupported.
    """

    supported: bool
    number: int | None = None
    passage_id: str | None = None
    also: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A passage of the prompt with its number."""

    number: int
    passage: Passage

    @property
    def text(self) -> str:
        """Its title, heading and text."""
        return f"{self.passage.section or ''}\n{self.passage.searchable()}"


def said_exactly(claim: str, sources: Iterable[Source], question: str) -> Support:
    """Whether a sentence of a source says the claim in its words and their order, with little between them.

    The sentence, or its passage's title, must also have a part of what the question asks about; all of it if the claim
    has only one or two words. Its subject may be the title, for which a sentence has "she" or "it".
    """
    asked = set(_content(question))
    wanted, denials = _content(claim), _denials(claim)
    enough = 1.0 if len(wanted) < _FEWEST else _LEAST_ASKED
    for source in sources:
        title = _content(source.passage.title)
        about = {*title, *_content(source.passage.section or "")}
        rest = wanted[len(title) :] if title and wanted[: len(title)] == title else ()
        for sentence in sentences(source.passage.text):
            said = _content(sentence)
            denied = not _denials(sentence) <= denials or sentence.rstrip().endswith(_ASKS)
            if denied or (asked and len(asked & about.union(said)) / len(asked) < enough):
                continue
            if _in_order(wanted, said) or (rest and rest[0] in said[:2] and _in_order(rest, said)):
                shown = " ".join(sentence.split())
                return Support(supported=True, number=source.number, passage_id=source.passage.id, words=(shown,))
    return Support(supported=False, fault="no passage says it in these words")


@lru_cache(maxsize=4096)
def _content(text: str) -> tuple[str, ...]:
    """The words of a text without function words, each sign of a script without spaces as a word."""
    plain = _CONTRACTED.sub(" not", _SIGN.sub(r" \1 ", text))
    found = words(_IN_NUMBER.sub("p", _GROUPING.sub("", _BELOW_ZERO.sub("m", plain))))
    return tuple(word for word in found if word in _DECIDES or word not in stop_words())


def _denials(text: str) -> frozenset[str]:
    return _DENIALS.intersection(_content(text)) | set(_DENIED.findall(text))


def _in_order(wanted: Sequence[str], said: Sequence[str]) -> bool:
    """Whether the words occur in this order, with at most two others between neighbours."""
    for start in (place for place, word in enumerate(said) if wanted and word == wanted[0]):
        place = start
        for word in wanted[1:]:
            gap = said[place + 1 : place + 2 + _WIDEST_GAP]
            if word not in gap:
                break
            place += 1 + gap.index(word)
        else:
            return True
    return False


def lacking(claim: str, sources: Sequence[Source], question: str, calculation: str) -> tuple[list[str], list[str]]:
    """The figures and names of a claim that neither a source nor the question has, and the steps behind derived ones.

    A figure may follow from others by a calculation that is right; a page of a source is known, too.
    """
    texts = [*(source.text for source in sources), question]
    known = frozenset[float]().union(*map(values_in, texts))
    given = {one.written for text in texts for one in figures(text)}
    missing = [one for one in figures(claim) if not one.is_among(known) and one.written not in given]
    steps: dict[str, None] = {}
    if missing:
        pages = [pages for source in sources if (pages := source.passage.pages(0, len(source.passage.text)))]
        known = known.union(*map(_spoken_values_in, texts), *(range(first, last + 1) for first, last in pages))
        missing = [figure for figure in missing if not figure.is_among(known)]
    if missing:
        found = calculated(calculation, known)
        derived = [(figure, one) for figure in missing for one in found if any(map(figure.rounds, one.results))]
        missing = [figure for figure in missing if all(figure is not one for one, _ in derived)]
        steps = dict.fromkeys(one.written for one in found if derived)
    return [*(figure.written for figure in missing), *_strange_names(claim, texts)], list(steps)


def _strange_names(claim: str, texts: Collection[str]) -> list[str]:
    """The names of a claim without a word in the texts, if the claim is in their language: others are spelt as they are
    in that language.
    """
    known = {word for text in texts for word in words(text)}
    own = words(claim)
    if known >= _GERMAN or not own or sum(word in known for word in own) / len(own) < _SAME_LANGUAGE:
        return []
    return [name for match in _NAME.finditer(as_quoted(claim)) if known.isdisjoint(words(name := match[0]))]


_GROUPED = r"\d{1,3}(?:[.,'\u2019\u00a0\u202f ]\d{3})+(?:[.,]\d+)?(?![\d])"
_NUMBER = re.compile(rf"(?<![\d.,:]){_GROUPED}|\d+(?:[.,:]\d+)*")
_FREQUENT = {
    "en": "the of and to in is was were has had for on that by with it they at",
    "de": "der die das und ist nicht mit ein eine von zu den auf war er sie es hat ich wir",
    "fr": "le la les et des est dans pour une du au un que il elle a ont ils",
    "es": "el la los las y del en que una un con por es tiene hay era son",
    "it": "il la le di che della un una per con del nel era ha sono c'era",
    "pt": "o os as e do da em um uma com que no na tem ele ela era",
    "nl": "de het een van en is dat op te met in was hij zij heeft",
}
"""Frequent words of the languages whose number words text2num reads."""
_LEAST_FREQUENT = 2
"""The number of such words from which a text is read only in the languages of which it has most, else in all."""
_FACTORS = frozenset(
    {24.0, 28.0, 29.0, 30.0, 31.0, 52.0, 60.0, 100.0, 365.0, 366.0, 1000.0, 3600.0, 10_000.0, 1_000_000.0}
    | {1.6, 1.609, 0.62, 0.621, 3.28, 3.281, 0.3048, 2.54, 2.2, 2.205, 0.454, 2.471, 0.405, 1.8, 32.0}
)
"""Numbers that a calculation may use although no passage has them: they convert units, or are days of a month."""
_COUNTED = 12
"""Whole numbers up to this one may be what was counted in the passages."""
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_YEAR = r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)"
_DAY = re.compile(r"(?<![\d.,])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}|\d{2})\b)?")
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u2070-\u2079]")
_TIME = re.compile(r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])")
_DOTTED_TIME = re.compile(r"([01]?\d|2[0-4])\.([0-5]\d)")
_SPELT_TIME = re.compile(r"(?<![\d.,])(\d{1,2})\s?[.h\u6642\u70b9\u65f6]\s?([0-5]\d)(?!\d)")
_SIGNS = str.maketrans({"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u2248": "="})
_TOKEN = re.compile(rf"{_ISO.pattern}|{_NUMBER.pattern}|[%()]|[-+*/](?=\s*[\d(])")
_READABLE = {"+": " + ", "-": " \u2212 ", "*": " \u00d7 ", "/": " \u00f7 "}
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)
_LONGEST, _MOST_READINGS = 200, 64


@dataclass(frozen=True, kw_only=True)
class ReadFigure:
    """A number in digits, as written, with its possible values: `1,260` may be 1260 or 1.26; for times see `_clock`."""

    written: str
    values: tuple[float, ...]
    step: float = 1.0

    def is_among(self, others: Collection[float]) -> bool:
        """Whether one of its values is one of the others."""
        return any(isclose(own, other, rel_tol=1e-9) for own in self.values for other in others)

    def rounds(self, result: float) -> bool:
        """Whether it is a result as precisely as it is written."""
        return any(abs(own - result) <= self.step / 2 + 1e-9 * abs(result) for own in self.values)


def figures(text: str) -> tuple[ReadFigure, ...]:
    """The numbers of a text that are written in digits.

    >>> [figure.values for figure in figures("In 2021 it cost 1,260.50 euros.")]
    [(2021.0,), (1260.5,)]
    """
    return tuple(_figure(match[0]) for match in _NUMBER.finditer(_written_out(text)))


def _written_out(text: str) -> str:
    """The text with its fractions as decimals and without exponents, which would read as digits of the number."""
    return unicodedata.normalize("NFKC", _RAISED.sub(" ", with_decimals(text)))


def _figure(written: str) -> ReadFigure:
    time = _TIME.fullmatch(written) or _DOTTED_TIME.fullmatch(written)
    minutes = (_clock(time[1], time[2]),) if time else ()
    if ":" in written:
        return ReadFigure(written=written, values=minutes)
    plain = re.sub(r"['\u2019\u00a0\u202f ]", "", written)
    grouped = re.sub(r"[.,](?=\d{3}(?:[.,]|$))", "", plain)
    readings = [one.replace(",", ".") for one in (grouped, plain) if re.fullmatch(r"\d+(?:[.,]\d+)?", one)]
    decimals = len(readings[-1].partition(".")[2]) if readings else 0
    return ReadFigure(written=written, values=(*dict.fromkeys(map(float, readings)), *minutes), step=10.0**-decimals)


def _clock(hour: str | int, minute: str) -> float:
    """A time of day as a value of its own, below zero, so that it is not taken for a number."""
    return -1.0 - 60 * int(hour) - int(minute)


@lru_cache(maxsize=1024)
def values_in(text: str) -> frozenset[float]:
    """Every number of a text in digits, and the hour and the minute of a time."""
    plain = _written_out(text)
    found = {float(part) for day in _DAY.findall(plain) for part in day if part}
    for figure in figures(plain):
        unread = ":" in figure.written or all(value < 0 for value in figure.values)
        parts = re.findall(r"\d+" if unread else _YEAR, figure.written)
        found.update(figure.values, map(float, parts))
    for sign in re.findall(FRACTION, text):
        found |= {float(part) for part in re.findall(r"\d+", unicodedata.normalize("NFKC", sign))}
    for hour, minute in (*_TIME.findall(plain), *_SPELT_TIME.findall(plain)):
        found |= {_clock(hour, minute), float(int(hour) % 12), _clock(int(hour) % 12, minute)}
    return frozenset(found)


@lru_cache(maxsize=1024)
def _spoken_values_in(text: str) -> frozenset[float]:
    """Every number of a text, also in words."""
    from text_to_num import alpha2digit

    said = text.lower().split()
    counts = {name: sum(said.count(word) for word in words.split()) for name, words in _FREQUENT.items()}
    most = max(counts.values())
    read = [name for name, count in counts.items() if count == most or most < _LEAST_FREQUENT]
    return frozenset[float]().union(*(values_in(str(alpha2digit(text, name, 0))) for name in read))


@dataclass(frozen=True, kw_only=True)
class Calculation:
    """A calculation that is right; `written` shows it, and `operands` are the numbers that it uses."""

    written: str
    operands: tuple[float, ...]
    results: tuple[float, ...]


def calculated(text: str, known: Collection[float]) -> tuple[Calculation, ...]:
    """The calculations of a text that are right, and whose operands are known or results of those before.

    >>> [one.written for one in calculated("2 x 34 + 36 = 104; 104 - 0 = 104", {34.0, 36.0})]
    ['2 \u00d7 34 + 36 = 104']
    """
    found: list[Calculation] = []
    for step in re.split(r"[;\n]", text):
        right = _right(step) if len(step) <= _LONGEST else None
        if right is not None and _follows(right, known, {value for one in found for value in one.results}):
            found.append(right)
    return tuple(found)


def _right(step: str) -> Calculation | None:
    """The calculation of a line, if a figure behind it is its value."""
    sides = [_tokens(side) for side in step.translate(_SIGNS).split("=")]
    sides = [side for side in sides if any(token[0].isdigit() for token in side)]
    left = next((side for side in sides if not _READABLE.keys().isdisjoint(side)), None)
    rights = [side for side in sides if side is not left]
    if left is None:
        return None
    for value, operands in _readings(left) if rights else ():
        # a difference of times is in minutes, a share may be given in per cent
        also = (value / 60.0, -1.0 - value) if ":" in "".join(left) else (100.0 * value,) if "%" in rights[-1] else ()
        places = ((side, place) for side in rights for place, token in enumerate(side) if token[0].isdigit())
        found = [one for one in places if any(map(_figure(one[0][one[1]]).rounds, (value, *also)))]
        if found:
            side, place = found[-1]  # not all of it, which may go on with another calculation
            shown = side[place : place + (2 if side[place + 1 : place + 2] == ["%"] else 1)]
            written = " = ".join("".join(_READABLE.get(one, one) for one in part) for part in (left, shown))
            results = [one for end, at in found for one in _figure(end[at]).values]
            return Calculation(written=written, operands=operands, results=(value, *also, *results))
    return None


def _tokens(side: str) -> list[str]:
    """The numbers, dates, signs and brackets of a side, without units, currencies and remarks."""
    plain = re.sub(r"(?<=[\d)\s])[xX](?=[\s\d(])", "*", unicodedata.normalize("NFKC", side))
    plain = re.sub(r"\([^()\d]*\)|[^\W\d_]+|[^\w\s.,:()+*/%-]|_", " ", plain)
    return [match[0] for match in _TOKEN.finditer(plain)]


def _readings(side: Sequence[str]) -> Iterator[tuple[float, tuple[float, ...]]]:
    """The values of a side, by the readings of its numbers, each with these numbers."""
    choices = [_date(token) or _figure(token).values for token in side if token[0].isdigit()]
    template = "".join("{}" if token[0].isdigit() else "/100" if token == "%" else token for token in side)
    for chosen in islice(product(*choices), _MOST_READINGS):
        # a time enters as minutes
        numbers = (f"({one if one >= 0 else -1.0 - one!r})" for one in chosen)
        try:
            value = _value(ast.parse(template.format(*numbers), mode="eval").body)
        except (ArithmeticError, SyntaxError, RecursionError):
            continue
        yield value, chosen


def _date(written: str) -> tuple[float, ...]:
    """The number of a day, counted from the first; empty for something else."""
    match = _ISO.fullmatch(written)
    try:
        return (float(date(*map(int, match.groups())).toordinal()),) if match else ()
    except ValueError:
        return ()


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(number) | int(number)):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left), _value(right))
    raise SyntaxError("Not a calculation.")


def _follows(one: Calculation, known: Collection[float], results: Collection[float]) -> bool:
    """Whether a calculation uses numbers of the passages, and does not merely repeat one of them."""
    days = range(365_000, date.max.toordinal())
    given = [
        operand in known
        or operand in results
        or (operand in days and float(date.fromordinal(int(operand)).day) in known)
        for operand in one.operands
    ]
    free = [operand in _FACTORS or (operand == int(operand) and 1 <= operand <= _COUNTED) for operand in one.operands]
    repeats = len(one.operands) == 2 and any(isclose(one.results[0], operand) for operand in one.operands)
    return any(given) and not repeats and all(map(operator.or_, given, free))
