"""Converts the writer's marks into citations that resolve to a place in a document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..retrieval.passage import Found, Passage
from ..text.names import content_words
from ..text.sentences import sentences
from .citation import Citation, Scores
from .claims import Claim, claims
from .marks import Mark, marks, without
from .quotes import excerpt, place
from .styles import Style


@dataclass(frozen=True, kw_only=True)
class Cited:
    """An answer with its citations written out.

    `citations` are those shown, without duplicates, in text order. `removed` counts the numbers that
    were removed because they refer to no passage of the prompt.
    """

    text: str
    citations: tuple[Citation, ...]
    removed: int


def cite(answer: str, passages: Sequence[Found], quotes: Sequence[str], style: Style) -> Cited:
    """Write each citation mark of the answer in a style, and remove those that cite nothing.

    `passages` are those of the writer's prompt, numbered from 1; `quotes` is what the writer copied
    from them. See `marks` for what counts as a mark. The blank before a removed mark is removed with it, as are
    parentheses that contain nothing else.
    """
    texts = [found.passage.searchable() for found in passages]
    by_mark = _claims_of_marks(answer, texts)
    written: list[tuple[Mark, str]] = []
    citations: list[Citation] = []
    for mark, claim in by_mark.items():
        own = [_citation(passages[number - 1], claim, quotes) for number in mark.numbers if _known(number, passages)]
        citations.extend(own)
        written.append((mark, " ".join(dict.fromkeys(style.written(citation) for citation in own))))
    return Cited(
        text=_replaced(answer, written),
        citations=tuple(dict.fromkeys(citations)),
        removed=_unknown(by_mark, passages),
    )


def removed_marks(answer: str, passages: Sequence[Found]) -> int:
    """The number of citations that `cite` would remove because no passage has their number."""
    return _unknown(marks(answer, [found.passage.searchable() for found in passages]), passages)


def _unknown(found: Iterable[Mark], passages: Sequence[Found]) -> int:
    return sum(not _known(number, passages) for mark in found for number in mark.numbers)


def _known(number: int, passages: Sequence[Found]) -> bool:
    return 1 <= number <= len(passages)


def _claims_of_marks(answer: str, texts: Sequence[str]) -> Mapping[Mark, str]:
    """Every mark in order, with the text of its claim."""
    found = marks(answer, texts)
    stated: list[Claim] = list(claims(answer, texts)) if found else []
    by_mark = dict.fromkeys(found, "")
    current = 0
    for mark in found:
        while current < len(stated) and stated[current].span[1] <= mark.start:
            current += 1
        if current < len(stated) and stated[current].span[0] <= mark.start:
            by_mark[mark] = stated[current].text
    return by_mark


def _replaced(answer: str, written: Sequence[tuple[Mark, str]]) -> str:
    """The answer with marks replaced by texts; a mark without a text is removed, together with its blanks."""
    pieces: list[str] = []
    cuts: list[tuple[int, int]] = []
    position, length = 0, 0
    for mark, text in written:
        start, end = (mark.start, mark.end) if text else _with_parentheses(answer, mark)
        pieces += [answer[position:start], text or answer[start:end]]
        length += start - position
        if not text:
            cuts.append((length, length + end - start))
        length += len(pieces[-1])
        position = end
    return without("".join([*pieces, answer[position:]]), cuts)


def _with_parentheses(answer: str, mark: Mark) -> tuple[int, int]:
    enclosed = answer[mark.start - 1 : mark.start] == "(" and answer[mark.end : mark.end + 1] == ")"
    return (mark.start - 1, mark.end + 1) if enclosed else (mark.start, mark.end)


def _citation(found: Found, claim: str, quotes: Sequence[str]) -> Citation:
    passage = found.passage
    start, end, quoted = _stretch(passage.text, claim, quotes)
    first, last = excerpt(passage.text, start, end)
    page, last_page = passage.pages(start, end) or (None, None)
    return Citation(
        doc_id=passage.doc_id,
        passage_id=passage.id,
        title=passage.title,
        page=page,
        last_page=last_page,
        section=passage.section,
        span=_within_document(passage, start, end) if quoted else passage.span,
        snippet=passage.text[first:last],
        scores=Scores(score=found.score, dense=found.dense, lexical=found.lexical),
    )


def _stretch(text: str, claim: str, quotes: Sequence[str]) -> tuple[int, int, bool]:
    """The stretch of a passage that the claim relies on, and whether it was quoted.

    The quote that shares most words with the claim; the sentence that does if no quote shares any, or all of the text.
    """
    wanted = set(content_words(claim))

    def shared(span: tuple[int, int]) -> int:
        return len(wanted.intersection(content_words(text[slice(*span)])))

    places = [found for quote in quotes if (found := place(quote, text))]
    quoted = max(places, key=shared, default=None)
    ends = list(accumulate(map(len, sentences(text))))
    spans = [(start, start + len(text[start:end].rstrip())) for start, end in zip([0, *ends], ends, strict=False)]
    best = max(spans, key=shared, default=(0, 0))
    if quoted is not None and (shared(quoted) or not shared(best)):
        return (*quoted, True)
    return (*(best if shared(best) else (0, len(text.rstrip()))), False)


def _within_document(passage: Passage, start: int, end: int) -> tuple[int, int] | None:
    if passage.span is None:
        return None
    first, last = passage.span
    # places can be located only if the text is the document's own
    return (first + start, first + end) if last - first == len(passage.text) else passage.span
