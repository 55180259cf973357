"""The words of `words.yaml` and `opposites.yaml`, prepared for comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ...text.tokens import stem
from ...text.words import stop_words


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The grammatical words of one language, in lower case; those of `stems` as stems.

    `read` means that the language has a list of function words, so every word not listed is a content word.
    """

    read: bool
    function: frozenset[str]
    telling: frozenset[str]
    negations: frozenset[str]
    boundaries: frozenset[str]
    prepositions: frozenset[str]
    agents: frozenset[str]
    articles: frozenset[str]
    hedges: frozenset[str]
    implicit: frozenset[str]
    symmetric: frozenset[str]
    light: frozenset[str]
    opposites: tuple[tuple[frozenset[str], frozenset[str]], ...]


@cache
def page_words() -> frozenset[str]:
    """Words for a page, in every language."""
    return frozenset(str(word).lower() for words in _rows("words.yaml")["page"].values() for word in words)


@cache
def grammar(language: str) -> Grammar:
    """The words of a language; empty sets if it has none."""
    rows = _rows("words.yaml")
    plain = {key: frozenset(map(str, rows[key].get(language, ()))) for key in rows if isinstance(rows[key], Mapping)}
    changing = frozenset(rows["telling"]) if language == "en" else frozenset[str]()
    function = frozenset(stop_words()) if language == "en" else frozenset[str]()
    return Grammar(
        read=language == "en",
        telling=changing,
        function=(function | plain["articles"] | plain["prepositions"] | plain["boundaries"]) - changing,
        negations=plain["negations"],
        boundaries=plain["boundaries"],
        prepositions=plain["prepositions"],
        agents=plain["agents"],
        articles=plain["articles"],
        hedges=_stems(plain["hedges"], language),
        implicit=_stems(plain["implicit"], language),
        symmetric=_stems(plain["symmetric"], language) | plain["symmetric"],
        light=_stems(plain["light"], language),
        opposites=tuple(
            (_stems(one, language), _stems(other, language)) for one, other in _rows("opposites.yaml").get(language, ())
        ),
    )


@cache
def openers() -> frozenset[str]:
    """Words for yes and no that begin an answer."""
    return frozenset(map(str, _rows("words.yaml")["openers"]))


@cache
def forms_of_address() -> frozenset[str]:
    """Words before a person's name, in every language, in lower case: Ms, Frau, Monsieur."""
    return frozenset(map(str, _rows("words.yaml")["forms_of_address"]))


@cache
def asking(language: str) -> frozenset[str]:
    """Stems of words that a question contains only because it is a question."""
    return _stems(frozenset(map(str, _rows("words.yaml")["asking"].get(language, ()))), language)


def _stems(words: Sequence[str] | frozenset[str], language: str) -> frozenset[str]:
    return frozenset(stem(str(word), language) for word in words)


@cache
def _rows(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath(name).read_text(encoding="utf-8"))
