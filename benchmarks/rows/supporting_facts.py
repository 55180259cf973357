"""Supporting facts predicted from a draft's quotes: each quote is located in the texts and counts as its sentences.

Texts are compared after `as_quoted`: white space, typographic quotes and dashes are ignored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from meta_agent_rag.agent.engine import Answer
from meta_agent_rag.datasets import Question
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.text.normalise import as_quoted
from meta_agent_rag.text.sentences import sentences

Fact: TypeAlias = tuple[str, int]
_TELLING_WORDS = 3
"""Number of words from which a quote identifies a text wherever it occurs in it."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class _QuotedText:
    """A text that may have been quoted, as one line, with the span of each of its sentences in it."""

    title: str
    text: str
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, title: str, pieces: Sequence[str]) -> "_QuotedText":
        """A text joined from its sentences, each with its own white space."""
        text = ""
        spans: list[tuple[int, int]] = []
        parted = False
        for piece in pieces:
            plain = as_quoted(piece)
            parted = parted or piece[:1].isspace()
            if plain and text and parted:
                text += " "
            spans.append((len(text), len(text) + len(plain)))
            text += plain
            parted = piece[-1:].isspace() or (parted and not plain)
        return cls(title=title, text=text, spans=tuple(spans))

    def touched(self, quote: str) -> tuple[int, ...]:
        """The sentences of which the quote, wherever it occurs, covers at least one word."""
        places = [found.span() for found in re.finditer(re.escape(quote), self.text)]
        touched = (
            index
            for index, span in enumerate(self.spans)
            for word in _WORD.finditer(self.text, *span)
            if any(start <= word.start() and word.end() <= end for start, end in places)
        )
        return tuple(dict.fromkeys(touched))

    def whole(self, quote: str) -> tuple[int, ...]:
        """The sentences that the quote is."""
        return tuple(index for index, (start, end) in enumerate(self.spans) if _bare(self.text[start:end]) == quote)


def supporting_facts(question: Question, answer: Answer) -> list[Fact]:
    """The sentences that the chosen draft quoted, as (title, sentence index), each once.

    Only verbatim quotes count; a quote that spans sentences counts for each of which it covers a word. A quote of
    fewer than three words counts only if it is a whole sentence, or if a single text contains it. Passages
    of the prompt that are not among the question's paragraphs count as well, so that evidence from the wrong
    place lowers precision: their sentences are those of `packing.sentences`.
    """
    chosen = answer.rounds[answer.chosen]
    quotes = [quote for one in chosen.draft.quotes if (quote := _bare(as_quoted(one)))]
    own = [_QuotedText.of(paragraph.title, paragraph.sentences) for paragraph in question.paragraphs]
    packed = set(chosen.packing.packed_ids)
    passages = [found.passage for found in answer.evidence if found.passage.id in packed]
    sources = [*own, *_others(passages, own, quotes)]
    named = [_named(quote, sources) for quote in dict.fromkeys(quotes)]
    by_place = [sorted({index for found in named for index in found.get(place, ())}) for place in range(len(sources))]
    facts = [(source.title, index) for source, found in zip(sources, by_place, strict=True) for index in found]
    return list(dict.fromkeys(facts))


def _others(passages: Sequence[Passage], own: Sequence[_QuotedText], quotes: Sequence[str]) -> Iterator[_QuotedText]:
    """Passages from outside the question that contain a quote; a piece of one of its paragraphs is not outside."""
    for passage in passages:
        text = as_quoted(passage.text)
        known = any(passage.title == one.title and text in one.text for one in own)
        if not known and any(quote in text for quote in quotes):
            yield _QuotedText.of(passage.title, sentences(passage.text))


def _named(quote: str, sources: Sequence[_QuotedText]) -> dict[int, tuple[int, ...]]:
    """The sentences that a quote identifies, by the index of their source."""
    touched = {place: found for place, source in enumerate(sources) if (found := source.touched(quote))}
    if len(quote.split()) >= _TELLING_WORDS or len(touched) == 1:
        return touched
    return {place: found for place, source in enumerate(sources) if (found := source.whole(quote))}


def _bare(quote: str) -> str:
    """A quote without surrounding quotation marks and an added full stop, as `is_verbatim` searches for it."""
    return quote.strip('" ').rstrip('." ')
