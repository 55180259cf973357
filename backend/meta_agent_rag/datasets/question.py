"""A question of a data set, with its gold answers and the paragraphs that come with it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph of a question's context.

    The sentences, put together without anything between them, are the text: each brings its own leading
    blank, as HotpotQA's do. `supporting_sentences` holds indices from 0 and is empty where a data
    set labels whole paragraphs only (MuSiQue); `is_supporting` holds for both kinds.
    """

    title: str
    sentences: tuple[str, ...]
    is_supporting: bool
    supporting_sentences: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """The paragraph as it reads, without its title."""
        return "".join(self.sentences)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, its gold answers and its context, in the order of the file.

    `supporting_facts` are (title, sentence index) exactly as the file has them, also those that name
    no sentence of the context (HotpotQA has such): the official score counts them. `facts` are the single facts
    that the file breaks the question into, as (subject, relation, value), in their order, or, where it has no subjects,
    as ("", question, value); empty where the file does not tell.
    `hops` is `None` where the file does not tell.
    """

    id: str
    text: str
    answer: str
    aliases: tuple[str, ...] = ()
    type: str | None = None
    hops: int | None = None
    paragraphs: tuple[Paragraph, ...]
    supporting_facts: tuple[tuple[str, int], ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()

    @property
    def golds(self) -> tuple[str, ...]:
        """The answer, then its aliases, each once and none blank."""
        return tuple(dict.fromkeys(gold for gold in (self.answer, *self.aliases) if gold.strip()))
