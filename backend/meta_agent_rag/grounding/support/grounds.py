"""What a claim is held against: sentences of a passage, with the passage around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .statement import Item, Statement

NEARLY = 0.65
"""Share of a claim's items from which it is nearly a copy."""


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """A claim and what is to support it.

    `sentences` are those of the passage in which the named words stand; `named` the words themselves, often the same.
    `passage` are all sentences of the passages concerned, `titles` their titles; `question` is what was asked.
    `follows` are the claim's figures that code derived from those of the named words.
    """

    claim: Statement
    sentences: tuple[Statement, ...]
    named: tuple[Statement, ...]
    passage: tuple[Statement, ...]
    titles: tuple[Statement, ...]
    question: Statement
    follows: frozenset[str] = field(default_factory=frozenset)

    @property
    def nearly_copied(self) -> bool:
        """Does the claim consist mostly of the passage's own words, so that it can be compared with them?"""
        return share_held(self.claim.items, (*self.sentences, *self.titles)) >= NEARLY

    @property
    def same_language(self) -> bool:
        """Are claim and passage in one language, so that their words can be compared?"""
        return all(sentence.language == self.claim.language for sentence in self.sentences)

    def around(self) -> Iterator[Statement]:
        """The sentences, what stands before each in its passage, and the titles: where their names may be."""
        yield from self.titles
        for before, sentence in zip((None, *self.passage), self.passage, strict=False):
            if sentence in self.sentences:
                yield sentence
                if before is not None:
                    yield before

    def given(self, item: Item) -> bool:
        """Does the question give it, so that the claim may repeat it? A name must be in the passage too."""
        known = item.figure is not None or any(one.holds(item) for one in (*self.passage, *self.titles))
        return known and self.question.holds(item)


def share_held(items: tuple[Item, ...], statements: tuple[Statement, ...]) -> float:
    """Share of the items that the statements speak of, 0..1; 1 where there is none."""
    held = sum(any(statement.holds(item) for statement in statements) for item in items)
    return held / len(items) if items else 1.0


def comparable(one: Item, other: Item) -> bool:
    """Are both values of one kind, so that a sentence may give one in place of the other?"""
    if one.figure is None or other.figure is None:
        return one.is_name and other.is_name
    if one.figure.date is not None or other.figure.date is not None:
        return one.figure.date is not None and other.figure.date is not None
    return one.figure.unit == other.figure.unit or "" in {one.figure.unit, other.figure.unit}
