"""What code decides exactly about a claim: whether a passage says it in these words, and whether its figures occur."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..retrieval.passage import Passage
from ..text.names import words
from ..text.normalise import as_quoted
from ..text.sentences import sentences
from ..text.words import stop_words
from .calculation import calculated, figures, spoken_values_in, values_in, without_codes

_DENIALS = frozenset(
    {"not", "no", "never", "none", "nobody", "nothing", "few", "hardly", "without", "nor", "neither", "except", "only"}
    | {"but", "unless", "if", "prohibited", "aber", "aucun", "pero"}
    | {"nicht", "kein", "keine", "nie", "ohne", "ne", "pas", "sans", "jamais", "nunca", "sin", "non", "senza", "niet"}
)
"""Words that turn a statement round; a sentence with one that a claim lacks does not say the claim."""
_DECIDES = _DENIALS | {"before", "after", "under", "over", "below", "above", "up", "down", "more", "most", "until"}
_SIGN = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
_IN_NUMBER = re.compile(r"(?<=\d)[.,:](?=\d)")
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
    wanted = _content(claim)
    enough = 1.0 if len(wanted) < _FEWEST else _LEAST_ASKED
    for source in sources:
        title = _content(source.passage.title)
        about = {*title, *_content(source.passage.section or "")}
        rest = wanted[len(title) :] if title and wanted[: len(title)] == title else ()
        for sentence in sentences(source.passage.text):
            said = _content(sentence)
            denied = not _DENIALS.intersection(said) <= set(wanted) or sentence.rstrip().endswith("?")
            if denied or (asked and len(asked & about.union(said)) / len(asked) < enough):
                continue
            if _in_order(wanted, said) or (rest and rest[0] in said[:2] and _in_order(rest, said)):
                shown = " ".join(sentence.split())
                return Support(supported=True, number=source.number, passage_id=source.passage.id, words=(shown,))
    return Support(supported=False, fault="no passage says it in these words")


@lru_cache(maxsize=4096)
def _content(text: str) -> tuple[str, ...]:
    """The words of a text without function words, each sign of a script without spaces as a word."""
    found = words(_IN_NUMBER.sub("", _SIGN.sub(r" \1 ", text)))
    return tuple(word for word in found if word in _DECIDES or word not in stop_words())


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

    A figure may follow from others by a calculation that is right. Names are looked for only if the claim is in the
    language of the passages, since a translation may spell them differently.
    """
    texts = [source.text for source in sources]
    known = frozenset[float]().union(*map(values_in, (*texts, question)))
    given = as_quoted(" ".join((*texts, question)))
    missing = [
        figure
        for figure in figures(without_codes(claim, given))
        if not figure.is_among(known) and figure.written not in given
    ]
    steps: dict[str, None] = {}
    if missing:
        known = known.union(*map(spoken_values_in, (*texts, question)), _places(sources))
        missing = [figure for figure in missing if not figure.is_among(known)]
    if missing:
        found = calculated(calculation, known)
        derived = [(figure, one) for figure in missing for one in found if any(map(figure.rounds, one.results))]
        missing = [figure for figure in missing if all(figure is not one for one, _ in derived)]
        steps = dict.fromkeys(one.written for one in found if derived)
    return [*(figure.written for figure in missing), *_strange_names(claim, (*texts, question))], list(steps)


def _places(sources: Iterable[Source]) -> frozenset[float]:
    """The pages of the passages, which an answer may name."""
    pages = [pages for source in sources if (pages := source.passage.pages(0, len(source.passage.text)))]
    return frozenset(float(page) for first, last in pages for page in range(first, last + 1))


def _strange_names(claim: str, texts: Collection[str]) -> list[str]:
    known = {word for text in texts for word in words(text)}
    own = words(claim)
    if known >= _GERMAN or not own or sum(word in known for word in own) / len(own) < _SAME_LANGUAGE:
        return []
    return [name for match in _NAME.finditer(as_quoted(claim)) if known.isdisjoint(words(name := match[0]))]
