"""A passage prepared for comparison with claims: its sentences and their places."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...retrieval.passage import Passage
from ...text.language import language_of
from ...text.sentences import sentences
from ..quotes import place
from .statement import Statement, read
from .tables import lines


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence, or a row of a table, at `text[start:end]` of its passage."""

    statement: Statement
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Source:
    """A passage that was read; `number` is its 1-based number in the prompt."""

    number: int
    passage: Passage
    title: Statement
    heading: Statement
    sentences: tuple[Sentence, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Its sentences in order."""
        return tuple(sentence.statement for sentence in self.sentences)

    def around(self, words: str) -> tuple[Statement, ...]:
        """The sentences that contain the words verbatim; empty if the passage does not contain them."""
        found = place(words, self.passage.text)
        if found is None:
            return ()
        start, end = found
        return tuple(one.statement for one in self.sentences if one.start < end and start < one.end)


def read_sources(passages: Sequence[Passage], numbers: Iterable[int]) -> tuple[Source, ...]:
    """The passages with these 1-based numbers; unknown numbers are skipped."""
    return tuple(_source(passages[number - 1], number) for number in numbers if 1 <= number <= len(passages))


@lru_cache(maxsize=256)
def _source(passage: Passage, number: int) -> Source:
    language = language_of(passage.text)
    return Source(
        number=number,
        passage=passage,
        title=read(passage.title, language),
        heading=read(passage.section or "", language),
        sentences=tuple(_sentences(passage.text, language)),
    )


def _sentences(text: str, language: str) -> Iterator[Sentence]:
    for line in lines(text):
        position = line.start
        for sentence in [line.text] if line.label else sentences(line.text, language):
            end = line.end if line.label else min(position + len(sentence), line.end)
            if sentence.strip():
                yield Sentence(statement=read(sentence.strip(), language, line.label), start=position, end=end)
            position = end
