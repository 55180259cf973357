"""A passage prepared for comparison with claims: its sentences and their places."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ...retrieval.passage import Passage
from ...text.language import language_of
from ...text.sentences import sentences
from ..quotes import place
from .statement import Statement, read
from .tables import lines

_CERTAIN_END = re.compile(r"(?:[^\W\d_A-Z]{3}|\d{4}|[^\W\d_][\])\"])[.!][\])\"]*\s*$")
"""The end of a sentence that is not an abbreviation, a number of a list, or a question."""
_LEAST_WORDS = 5
_CLOSING = " \n.!\"')]"
_LOOKED_AT = 12


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence, or a row of a table, at `text[start:end]` of its passage."""

    statement: Statement
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Source:
    """A passage, read when it is needed; `number` is its 1-based number in the prompt."""

    number: int
    passage: Passage

    @cached_property
    def title(self) -> Statement:
        """Its title."""
        return read(self.passage.title, self._language)

    @cached_property
    def heading(self) -> Statement:
        """The heading of its section."""
        return read(self.passage.section or "", self._language)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Its sentences and rows with their places."""
        return tuple(_sentences(self.passage.text, self._language))

    @cached_property
    def _language(self) -> str:
        return language_of(self.passage.text)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Its sentences in order."""
        return tuple(sentence.statement for sentence in self.sentences)

    def is_copied_by(self, claim: str) -> bool:
        """Does the claim consist of whole sentences, word for word?

        Not if it has fewer than five words, or is within quotation marks, or if it is uncertain where the sentences
        begin and end, since what precedes them might deny them: "No court found that Mr. | Smith was guilty."
        """
        text = self.passage.text
        found = place(claim, text) if len(claim.split()) >= _LEAST_WORDS else None
        if found is None:
            return False
        begin, end = found
        starts = [one.start for one in self.sentences if one.start <= begin and not text[one.start : begin].strip(' "')]
        stops = [one.end for one in self.sentences if end <= one.end and not text[end : one.end].strip(_CLOSING)]
        if not starts or not stops or text.count('"', 0, starts[0]) % 2 or text[stops[0] :].lstrip()[:1].islower():
            return False
        return _ends(text, starts[0]) and _ends(text, stops[0])

    def around(self, words: str) -> tuple[Statement, ...]:
        """The sentences that contain the words verbatim; empty if the passage does not contain them."""
        found = place(words, self.passage.text)
        if found is None:
            return ()
        start, end = found
        return tuple(one.statement for one in self.sentences if one.start < end and start < one.end)

    def pages_of(self, words: str) -> tuple[int, int] | None:
        """The pages on which the words stand verbatim; `None` if the passage does not contain them or has no pages."""
        found = place(words, self.passage.text)
        return None if found is None else self.passage.pages(*found)


def _ends(text: str, at: int) -> bool:
    """Does a sentence certainly end before this place, or the text begin there?"""
    return not text[:at].strip() or _CERTAIN_END.search(text[max(at - _LOOKED_AT, 0) : at]) is not None


def read_sources(passages: Sequence[Passage], numbers: Iterable[int]) -> tuple[Source, ...]:
    """The passages with these 1-based numbers; unknown numbers are skipped."""
    return tuple(_source(passages[number - 1], number) for number in numbers if 1 <= number <= len(passages))


@lru_cache(maxsize=256)
def _source(passage: Passage, number: int) -> Source:
    return Source(number=number, passage=passage)


def _sentences(text: str, language: str) -> Iterator[Sentence]:
    for line in lines(text):
        position = line.start
        for sentence in [line.text] if line.label else sentences(line.text, language):
            end = line.end if line.label else min(position + len(sentence), line.end)
            if sentence.strip():
                statement = read(sentence.strip(), language, line.label, in_table=line.in_table)
                yield Sentence(statement=statement, start=position, end=end)
            position = end
