"""What a claim is compared with: sentences of a passage, and the passage around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .statement import Item, Statement

NEARLY = 0.65
"""Share of a claim's items from which it is nearly a copy."""


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """A claim and the passage text that may support it.

    `sentences` are those of the passage that contain the named words; `named` the words themselves, often the same.
    `passage` holds all sentences of the passages concerned, `titles` their titles; `question` is what was asked.
    `follows` are the claim's figures that code derived from those of the named words, `prompted` the sentences and
    titles of all passages of the prompt.
    """

    claim: Statement
    sentences: tuple[Statement, ...]
    named: tuple[Statement, ...]
    passage: tuple[Statement, ...]
    titles: tuple[Statement, ...]
    question: Statement
    follows: frozenset[str] = field(default_factory=frozenset)
    prompted: tuple[Statement, ...] = ()

    @property
    def nearly_copied(self) -> bool:
        """Does the claim consist mostly of the passage's own words, so that it can be compared with them?"""
        return share_held(self.claim.items, (*self.sentences, *self.titles)) >= NEARLY

    @property
    def same_language(self) -> bool:
        """Are claim and passage in the same language, so that their words can be compared?"""
        return all(sentence.language == self.claim.language for sentence in self.sentences)

    def around(self) -> Iterator[Statement]:
        """The sentences, those before each in its passage, and the titles: where names may occur."""
        yield from self.titles
        for before, sentence in zip((None, *self.passage), self.passage, strict=False):
            if sentence in self.sentences:
                yield sentence
                if before is not None:
                    yield before

    def given(self, item: Item) -> bool:
        """Is it in the question, so that the claim may repeat it? A name must also be in a passage of the prompt."""
        if not self.question.holds(item):
            return False
        return item.figure is not None or any(one.holds(item) for one in (*self.passage, *self.titles, *self.prompted))


def share_held(items: tuple[Item, ...], statements: tuple[Statement, ...]) -> float:
    """Share of the items that the statements mention, 0..1; 1 if there are no items."""
    held = sum(any(statement.holds(item) for statement in statements) for item in items)
    return held / len(items) if items else 1.0


def comparable(one: Item, other: Item) -> bool:
    """Are both values of one kind, so that a sentence may give one instead of the other?"""
    if one.figure is None or other.figure is None:
        return one.is_name and other.is_name
    if one.figure.date is not None or other.figure.date is not None:
        return one.figure.date is not None and other.figure.date is not None
    return one.figure.unit == other.figure.unit or "" in {one.figure.unit, other.figure.unit}
