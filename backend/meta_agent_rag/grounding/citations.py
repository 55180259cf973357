"""Citations: the writer's marks become places in documents, and claims are annotated with their support."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..prompts import phrase
from ..retrieval.passage import Found
from ..text.names import content_words
from ..text.sentences import sentences
from .exact import Support
from .marks import Claim, Mark, claims, marks, without
from .quotes import excerpt, place


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores that found a passage (see `retrieval.passage.Found`)."""

    score: float
    dense: float | None = None
    lexical: float | None = None


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A place in a document that an answer refers to.

    `page` is where the quoted stretch begins and `last_page` where it ends: of the whole passage if its page breaks are
    unknown, `None` if there are no pages. `span` is the (start, end), in characters of the document's text, of the
    quoted stretch, or of the whole passage if nothing was quoted; `None` if unknown. `snippet` occurs verbatim in
    the passage's text: 30 to 50 words around the quote, or around the sentences that share most words with
    the claim.
    """

    doc_id: str
    passage_id: str
    title: str
    page: int | None
    section: str | None
    span: tuple[int, int] | None
    snippet: str
    scores: Scores
    last_page: int | None = None

    @property
    def pages(self) -> str | None:
        """The page in the usual notation: `3`, or `3-4`."""
        if self.page is None or self.last_page in {None, self.page}:
            return None if self.page is None else str(self.page)
        return f"{self.page}-{self.last_page}"

    @property
    def name(self) -> str:
        """The document's title in one line, or its id if it has no title."""
        return " ".join(self.title.split()) or self.doc_id

    def written(self, style: str) -> str:
        """The citation as an answer shows it, in a style of CITATION_STYLE."""
        if style == "source":
            section = " ".join((self.section or "").split())
            where = self.name if section in {"", self.name} else f"{self.name}, {section}"
            page = "" if self.pages is None else f" (Page {self.pages})"
            return f'[Source: {where}{page} - "{" ".join(self.snippet.split())}"]'
        return f"[{self.name}]" if style == "title" or self.pages is None else f"[{self.name}, p.{self.pages}]"


@dataclass(frozen=True, kw_only=True)
class Cited:
    """An answer with its citations written out, and those that are shown, without duplicates, in text order."""

    text: str
    citations: tuple[Citation, ...]


def cite(answer: str, passages: Sequence[Found], quotes: Sequence[str], style: str) -> Cited:
    """Write each citation mark of the answer in a style, and remove those that cite nothing.

    `passages` are those of the writer's prompt, numbered from 1; `quotes` is what the writer copied
    from them. See `marks` for what counts as a mark. The blank before a removed mark is removed with it, as are
    parentheses that contain nothing else.
    """
    texts = [found.passage.searchable() for found in passages]
    found = marks(answer, texts)
    stated = claims(answer, texts) if found else ()
    written: list[tuple[Mark, str]] = []
    citations: list[Citation] = []
    for mark in found:
        claim = next((one.text for one in stated if one.span[0] <= mark.start < one.span[1]), "")
        own = [citation_of(passages[n - 1], claim, quotes) for n in mark.numbers if 1 <= n <= len(passages)]
        citations.extend(own)
        written.append((mark, " ".join(dict.fromkeys(citation.written(style) for citation in own))))
    text = answer
    for mark, words in reversed(written):
        if words:
            text = f"{text[: mark.start]}{words}{text[mark.end :]}"
        else:
            enclosed = text[mark.start - 1 : mark.start] == "(" and text[mark.end : mark.end + 1] == ")"
            text = without(text, [(mark.start - enclosed, mark.end + enclosed)])
    return Cited(text=text, citations=tuple(dict.fromkeys(citations)))


def removed_marks(answer: str, passages: Sequence[Found]) -> int:
    """The number of citations that `cite` would remove because no passage has their number."""
    found = marks(answer, [one.passage.searchable() for one in passages])
    return sum(not 1 <= number <= len(passages) for mark in found for number in mark.numbers)


def citation_of(found: Found, claim: str, quotes: Sequence[str]) -> Citation:
    """The citation of a passage for a claim: the stretch that it relies on, and where that is."""
    passage = found.passage
    start, end, quoted = _stretch(passage.text, claim, quotes)
    first, last = excerpt(passage.text, start, end)
    page, last_page = passage.pages(start, end) or (None, None)
    span = passage.span
    if quoted and span is not None and span[1] - span[0] == len(passage.text):  # the text is the document's own
        span = span[0] + start, span[0] + end
    return Citation(
        doc_id=passage.doc_id,
        passage_id=passage.id,
        title=passage.title,
        page=page,
        last_page=last_page,
        section=passage.section,
        span=span,
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

    quoted = max((found for quote in quotes if (found := place(quote, text))), key=shared, default=None)
    ends = list(accumulate(map(len, sentences(text)), initial=0))
    spans = [(start, start + len(text[start:end].rstrip())) for start, end in pairwise(ends)]
    best = max(spans, key=shared, default=(0, 0))
    if quoted is not None and (shared(quoted) or not shared(best)):
        return (*quoted, True)
    return (*(best if shared(best) else (0, len(text.rstrip()))), False)


def marked(
    answer: str,
    stated: Sequence[Claim],
    support: Sequence[Support],
    *,
    evidence: Sequence[str] = (),
    drop: bool = False,
) -> str:
    """The answer annotated with the result for each claim, before `cite` writes its marks out.

    A supported claim cites the passages that support it, and no others; a derived figure is followed by its steps; an
    unsupported claim by the phrase `unsupported_claim` of `prompts/phrases.yaml`, or it is dropped. `stated` must be
    the claims of this answer, and `support` their support in the same order.
    """
    if drop and stated and not any(found.supported for found in support):
        return ""
    ends = [0, *(claim.span[1] for claim in stated)]
    written = ""
    unsupported: list[tuple[int, int]] = []
    for (before, end), claim, found in zip(pairwise(ends), stated, support, strict=True):
        start = len(written) + claim.span[0] - before
        stretch = answer[before:end]
        if found.supported:
            written += _with_support(stretch, claim, found, evidence)
        else:
            written += stretch if drop else f"{stretch} {phrase('unsupported_claim')}"
        if not found.supported and drop:
            unsupported.append((start, len(written)))
    return without(written + answer[ends[-1] :], unsupported)


def _with_support(stretch: str, claim: Claim, support: Support, evidence: Sequence[str]) -> str:
    """A claim with the marks of its passages: its own if they are among these, else theirs in place of the first."""
    used = [number for number in (support.number, *support.also) if number is not None]
    own = set(claim.marks)
    if own and own.isdisjoint(used) and (found := marks(stretch, evidence)):
        first, *others = found
        stretch = without(stretch, [(one.start, one.end) for one in others])
        stretch = f"{stretch[: first.start]}{''.join(f'[{number}]' for number in used)}{stretch[first.end :]}"
        used = []
    steps = [f"[{phrase('derived')} {step}]" for step in support.steps]
    return " ".join([stretch, *(f"[{number}]" for number in used if number not in own), *steps])
