"""A data set, and its questions with their gold answers and paragraphs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..discovery import require_functions
from .hub import Hub
from .rows import RawRows, read_json_rows

Aliases = Mapping[str, tuple[str, ...]]
"""Further gold answers by the id of an answer."""


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


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set: the source of its rows, and how a row becomes a question.

    `parse` takes a row of the official file or of the hub. It raises `pydantic.ValidationError` for a row of the
    wrong shape and returns `None` for a row that is not a question of this data set. `example` is a minimal valid
    row of the official file: the contract tests use it, and its fields identify this data set's files.
    `title` is the name as its authors write it; `packaged` names the file of `shipped` that is read if no other is
    given. `data_file` describes, for the documentation, the files that `--data-file` accepts.

        DATASET = Dataset(name="mine", hub=None, parse=parse, example={...})
    """

    name: str
    hub: Hub | None
    parse: Callable[[object, Aliases], Question | None]
    example: Mapping[str, object]
    read_rows: Callable[[Path], RawRows] = read_json_rows
    packaged: str | None = None
    takes_aliases: bool = False
    data_file: str = "a JSON list or JSON Lines of its rows"
    title: str = ""

    def __post_init__(self) -> None:
        require_functions("data set", self, "parse", "read_rows")

    @property
    def label(self) -> str:
        """The title, or the name if there is none."""
        return self.title or self.name
