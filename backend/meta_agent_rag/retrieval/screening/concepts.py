"""The meanings of words in text that addresses a language model: `concepts.yaml`, in several languages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TypeAlias

import numpy as np
import yaml
from numpy.typing import NDArray

from .tokens import EDGE, KINDS, tokens_of

_KEY = 3
_ANY_ENDING = "*"

Meaning: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Words and phrases by the beginning of their first word, each with the numbers of its concepts."""

    names: tuple[str, ...]
    words: Mapping[str, tuple[tuple[str, Meaning], ...]]
    phrases: Mapping[str, tuple[tuple[tuple[str, ...], Meaning], ...]]

    def found(self, tokens: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places of words with a meaning, and their concepts: a row of 0 and 1 for each place."""
        places, rows = [], []
        skipped = 0
        for at, token in enumerate(tokens):
            if at < skipped or not _is_known(token):
                continue
            length, meaning = self.phrase(tokens, at) or (1, meaning_of(token))
            if meaning:
                places.append(at)
                rows.append(meaning)
            skipped = at + length
        marked = np.zeros((len(rows), len(self.names)), dtype=np.float32)
        numbers = [number for number, row in enumerate(rows) for _ in row]
        marked[numbers, [concept for row in rows for concept in row]] = 1.0
        return np.array(places, dtype=np.int64), marked

    def phrase(self, tokens: Sequence[str], at: int) -> tuple[int, Meaning] | None:
        """The longest phrase that begins at a token: its length and meaning."""
        for phrase, meaning in _beginning(tokens[at]):
            if len(phrase) <= len(tokens) - at and all(map(_fits, phrase, tokens[at : at + len(phrase)])):
                return len(phrase), meaning
        return None


@lru_cache(maxsize=100_000)
def meaning_of(token: str) -> Meaning:
    """The numbers of a word's concepts, empty for most words."""
    forms = lexicon().words.get(token[:_KEY], ())
    return tuple(dict.fromkeys(number for form, meaning in forms if _fits(form, token) for number in meaning))


@lru_cache(maxsize=100_000)
def _is_known(token: str) -> bool:
    """Has the word a meaning, or does a phrase begin with it? Most words are not known."""
    return bool(_beginning(token) or meaning_of(token))


@lru_cache(maxsize=100_000)
def _beginning(token: str) -> tuple[tuple[tuple[str, ...], Meaning], ...]:
    """The phrases whose first word is this one, empty for most words."""
    return tuple(entry for entry in lexicon().phrases.get(token[:_KEY], ()) if _fits(entry[0][0], token))


def _fits(form: str, token: str) -> bool:
    return token == form or (form.endswith(_ANY_ENDING) and token.startswith(form[:-1]))


@cache
def lexicon() -> Lexicon:
    """The forms of the file, longest phrases first; tokens recognised by form are also concepts, and so are edges."""
    rows = yaml.safe_load(files(__package__).joinpath("concepts.yaml").read_text("utf-8"))
    names = (*rows, *KINDS, EDGE)
    meanings: dict[tuple[str, ...], dict[int, None]] = {(kind,): {names.index(kind): None} for kind in (*KINDS, EDGE)}
    for number, lists in enumerate(rows.values()):
        for form in (form for forms in lists for form in forms):
            meanings.setdefault(_tokens(form), {})[number] = None
    words: dict[str, list[tuple[str, Meaning]]] = {}
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = {}
    for form, numbers in sorted(meanings.items(), key=lambda entry: -len(entry[0])):
        key = form[0].rstrip(_ANY_ENDING)[:_KEY]
        if len(form) == 1:
            words.setdefault(key, []).append((form[0], tuple(numbers)))
        else:
            phrases.setdefault(key, []).append((form, tuple(numbers)))
    return Lexicon(
        names=names,
        words={key: tuple(own) for key, own in words.items()},
        phrases={key: tuple(own) for key, own in phrases.items()},
    )


def _tokens(form: str) -> tuple[str, ...]:
    """A form as tokens; a star belongs to the word before it, or stands alone."""
    found: list[str] = []
    for part in form.split():
        own = [*tokens_of(part.rstrip(_ANY_ENDING))] or [found.pop()]
        own[-1] += _ANY_ENDING if part.endswith(_ANY_ENDING) else ""
        found += own
    return tuple(found)
