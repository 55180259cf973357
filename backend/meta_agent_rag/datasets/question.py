"""A question of a data set, with its gold answers and its paragraphs."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph of a question's context.

    The text is the concatenation of the sentences, each of which brings its own leading
    blank, as in HotpotQA. `supporting_sentences` holds indices from 0 and is empty if a data
    set only labels whole paragraphs (MuSiQue); `is_supporting` is set for both kinds.
    """

    title: str
    sentences: tuple[str, ...]
    is_supporting: bool
    supporting_sentences: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """The text of the paragraph, without its title."""
        return "".join(self.sentences)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, its gold answers and its context, in the order of the file.

    `supporting_facts` are (title, sentence index) exactly as in the file, including those that match
    no sentence of the context (as in HotpotQA), because the official score counts them. `facts` are the single facts
    into which the file decomposes the question, as (subject, relation, value), in order, or, without subjects,
    as ("", question, value); empty if the file has none.
    `hops` is `None` if the file does not state it.
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
        """The answer, then its aliases, without duplicates and blanks."""
        return tuple(dict.fromkeys(gold for gold in (self.answer, *self.aliases) if gold.strip()))
