"""Passages of whole sentences, up to the length that the encoder reads, title included.

A passage contains at most `limit` tokens and, if the text allows it, at least half as many; a fifth of
it, in whole sentences, is repeated at the beginning of the next. A sentence is split only if it
is longer than a passage. Sentences count from 0 throughout the document; a table, or a part of one with its header,
counts as one.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ...retrieval.passage import Passage
from ...text.sentences import sentences
from ..document import Document
from ..tables import is_table
from . import Chunker, Chunking, ChunkingOptions, Layout, runs
from .characters import cut_point

Count: TypeAlias = Callable[[str], int]
_OVERLAP, _SHORTEST = 0.2, 0.5
_CHARACTERS_PER_TOKEN = 8
"""The most characters per token in any script; a tokenizer counts an endless "word" as one meaningless token."""
_PREFIX = 8
"""Tokens that are left for the words that some encoders put before a passage."""
MOST_TOKENS = 512
"""The longest passage, even if the encoder could read more: a longer one says too little about each part."""
_LIMITS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
    ("config.json", "max_position_embeddings"),
)


class _Unit(NamedTuple):
    """A sentence, or a part of one that is too long."""

    start: int
    end: int
    sentence: int
    size: int


def cut(document: Document, doc_id: str, *, count: Count, limit: int) -> Iterator[Passage]:
    """Split a document; `count` returns the number of tokens as the encoder would read them, `limit` is the maximum."""
    layout = Layout(document, doc_id)
    room = max(limit - count(f"{document.title}\n" if document.title else ""), limit // 4, 1)

    def size(start: int, end: int) -> int:
        alone = count(layout.text[start:end]) - count("")
        return max(alone, (end - start) // _CHARACTERS_PER_TOKEN, 1)

    units: list[_Unit] = []
    sections: list[str | None] = []
    sentence = 0
    for index, block in enumerate(document.blocks):
        span = layout.block_span(index)
        whole = is_table(block.text) and size(*span) <= room  # its rows need their header
        for first, end in [span] if whole else _sentences(layout.text, *span):
            start = first
            while start < end:
                stop = min(end, start + room * _CHARACTERS_PER_TOKEN)
                while (tokens := size(start, stop)) > room and stop - start > 1:
                    stop = cut_point(layout.text, start, end, max((stop - start) * room // tokens, 1))
                part = layout.text[start:stop]
                units.append(_Unit(start, start + len(part.rstrip()), sentence, tokens))
                sections.append(block.section)
                rest = layout.text[stop:end]
                start = stop + len(rest) - len(rest.lstrip())
            sentence += 1
    shortest = int(limit * _SHORTEST)
    for run in runs(sections, [unit.size for unit in units], shortest):
        for group in _groups(units[run.start : run.stop], room, shortest):
            yield layout.passage(group[0].start, group[-1].end, (group[0].sentence, group[-1].sentence))


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of the sentences of a block, excluding only white space."""
    for sentence in sentences(text[start:end]):
        if words := sentence.strip():
            first = start + sentence.index(words)
            yield first, first + len(words)
        start += len(sentence)


def _groups(units: Sequence[_Unit], room: int, shortest: int) -> Iterator[Sequence[_Unit]]:
    """Consecutive units, as many as fit; each group begins among the last units of the one before."""
    first = earliest = 0
    while True:
        last, held = first, units[first].size
        while last + 1 < len(units) and held + units[last + 1].size <= room:
            last += 1
            held += units[last].size
        at_end = last == len(units) - 1
        while at_end and first > earliest and held < shortest and held + units[first - 1].size <= room:
            first -= 1  # so that the last passage is not too short
            held += units[first].size
        yield units[first : last + 1]
        if at_end:
            return
        earliest, start, shared = first + 1, last + 1, units[last + 1].size
        most = min(_OVERLAP * room + shared, room)
        while start - 1 > first and shared + units[start - 1].size <= most:
            start -= 1
            shared += units[start].size
        first = start


def token_counter(folder: Path | None) -> Count:
    """Counts the tokens that the encoder in `folder` reads for a passage, special tokens included.

    Loads the tokenizer on the first call. Without a folder, or a tokenizer in it, words are counted.
    """
    file = folder / "tokenizer.json" if folder is not None else None
    if file is None or not file.is_file():
        return lambda text: len(text.split())
    return lambda text: len(_tokenizer(file).encode(text).ids)


@cache
def _tokenizer(file: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()  # files have both enabled, with lengths that are not the encoder's
    tokenizer.no_padding()
    return tokenizer


def encoder_limit(folder: Path | None) -> int:
    """The most tokens for a passage: the limit of the encoder in `folder` less 8, up to 512; 512 if unknown."""
    if folder is None:
        return MOST_TOKENS
    for name, key in _LIMITS:
        try:
            limit = float(json.loads((folder / name).read_text("utf-8"))[key])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if 0 < limit < 1e6:
            return min(int(limit) - _PREFIX, MOST_TOKENS)
    return MOST_TOKENS


def _prepare(options: ChunkingOptions) -> Chunking:
    count = token_counter(Path(options.encoder_folder) if options.encoder_folder else None)
    return Chunking(name=f"sentence-{options.token_limit}", cut=partial(cut, count=count, limit=options.token_limit))


CHUNKER = Chunker(name="sentence", prepare=_prepare, about="whole sentences, by the encoder's tokens")
