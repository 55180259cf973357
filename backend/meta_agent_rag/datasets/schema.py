"""Schemas shared by several data sets, validated with pydantic: with paragraphs as in HotpotQA, and without any."""

from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, Field, StrictInt, StrictStr

from .dataset import Paragraph


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("expected valid Unicode text, without lone surrogates") from None
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("expected some text")
    return text


def _pairs(*columns: tuple[str, ...]) -> Callable[[object], object]:
    """Convert the hub's columns, `{"title": [...], "sentences": [...]}`, to the official list of pairs."""

    def paired(value: object) -> object:
        if not isinstance(value, dict):
            return value
        for names in columns:
            lists = [column for name in names if isinstance(column := value.get(name), list)]
            if len(lists) == len(names):
                if len({len(column) for column in lists}) > 1:
                    raise ValueError(f"expected equally many entries in {' and '.join(names)}")
                return list(zip(*lists, strict=True))
        raise ValueError(f"expected a list of pairs, or the lists {' and '.join(columns[0])}")

    return paired


def _any_text(context: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not any(sentence.strip() for _, sentences in context for sentence in sentences):
        raise ValueError("expected at least one paragraph with text")
    return context


String = Annotated[StrictStr, AfterValidator(_encodable)]
Text = Annotated[String, AfterValidator(_filled)]
Context = Annotated[
    tuple[tuple[String, tuple[String, ...]], ...],
    BeforeValidator(_pairs(("title", "sentences"), ("title", "content"))),
    AfterValidator(_any_text),
]
Facts = Annotated[tuple[tuple[String, StrictInt], ...], BeforeValidator(_pairs(("title", "sent_id")))]


class HotpotRow(BaseModel, frozen=True):
    """A row in HotpotQA's schema, of the official file or of the hub; 2WikiMultiHopQA shares it."""

    id: Text = Field(validation_alias=AliasChoices("_id", "id"))
    question: Text
    answer: Text
    context: Context
    supporting_facts: Facts
    type: Text | None = None

    def hops(self) -> int | None:
        """The number of supporting paragraphs, one per hop: 2 in HotpotQA, 2 or 4 in 2WikiMultiHopQA."""
        return len({title for title, _ in self.supporting_facts}) or None


def paragraphs(row: HotpotRow, *, spaced: bool | None = None) -> tuple[Paragraph, ...]:
    """The labelled context; facts outside the context are tolerated, as in HotpotQA.

    `spaced` inserts a blank before each further sentence that does not begin with white space (missing in the files of
    2WikiMultiHopQA; present in HotpotQA's, except where a sentence was split inside a word). If it is not
    given, it applies to rows none of whose sentences begins with a blank.
    """
    if spaced is None:
        spaced = not any(sentence[:1].isspace() for _, sentences in row.context for sentence in sentences)
    return tuple(
        Paragraph(
            title=title,
            sentences=tuple(_spaced(sentences)) if spaced else sentences,
            is_supporting=any(title == named for named, _ in row.supporting_facts),
            supporting_sentences=frozenset(
                index for named, index in row.supporting_facts if named == title and 0 <= index < len(sentences)
            ),
        )
        for title, sentences in row.context
    )


def _spaced(sentences: Iterable[str]) -> Iterable[str]:
    for index, sentence in enumerate(sentences):
        yield f" {sentence}" if index and sentence and not sentence[0].isspace() else sentence
