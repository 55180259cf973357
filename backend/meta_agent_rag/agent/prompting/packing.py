"""Packs evidence into a prompt by token budget: whole passages first, else whole sentences, never part of a sentence.

In users' documents each sentence is marked, so that an instruction among them reads as a quotation: tags around a
passage alone hardly change what a model obeys (Hines et al. 2024, "Defending Against Indirect Prompt Injection Attacks
With Spotlighting", who call it datamarking).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ...prompts.fencing import attribute, fenced
from ...prompts.tokens import estimate_tokens
from ...retrieval.passage import Found, Passage
from ...text.sentences import sentences
from ..state import Packing

MARK = "\u00a6"
"""Starts each sentence of a marked passage; `grounded.yaml` and `coach_evidence.yaml` explain it to the model."""
_PAGE = re.compile(r"<(?=\s*/?\s*page\b)", re.IGNORECASE)
_NEW_PAGE = re.compile(r"</?page\b[^<>]*>", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The evidence as shown in a prompt, the texts it contains, and the record of what was packed."""

    text: str
    texts: tuple[str, ...]
    packing: Packing
    marked: bool = False

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of its passages."""
        return tuple(text.partition("\n")[0] for text in self.texts)


def pack(evidence: Sequence[Found], budget: int, *, marked: bool = False) -> Packed:
    """Pack passages in order into at most `budget` tokens (estimated), their sentences marked if `marked`.

    A passage that does not fit is shortened to the whole sentences that do; if not even the
    first sentence fits, it is left out, and the next one is tried.
    """
    used = 0
    blocks: list[str] = []
    texts: list[str] = []
    packed: list[str] = []
    shortened: list[str] = []
    left_out: list[str] = []
    for found in evidence:
        passage = found.passage
        text, block = _that_fits(passage, len(blocks) + 1, budget - used, marked)
        if not text:
            left_out.append(passage.id)
            continue
        used += estimate_tokens(block)
        blocks.append(block)
        texts.append(f"{passage.title}\n{text}")
        packed.append(passage.id)
        if text != passage.text:
            shortened.append(passage.id)
    packing = Packing(
        packed_ids=tuple(packed), shortened_ids=tuple(shortened), left_out_ids=tuple(left_out), tokens=used
    )
    return Packed(text="\n".join(blocks), texts=tuple(texts), packing=packing, marked=marked)


def without_marks(text: str) -> str:
    """A text that a model copied from marked sentences, across a page break or not."""
    if MARK not in text and not _NEW_PAGE.search(text):
        return text
    return " ".join(_NEW_PAGE.sub(" ", text.replace(MARK, " ")).split())


def _that_fits(passage: Passage, number: int, budget: int, marked: bool) -> tuple[str, str]:
    """The part of a passage that fits, and its block; both empty if nothing fits."""
    whole = _block(passage, number, passage.text, marked)
    if estimate_tokens(whole) <= budget:
        return passage.text, whole
    kept = ""
    for sentence in sentences(passage.text):
        longer = kept + sentence
        if estimate_tokens(_block(passage, number, longer, marked)) > budget:
            break
        kept = longer
    text = kept.rstrip()
    return text, _block(passage, number, text, marked) if text else ""


def _block(passage: Passage, number: int, text: str, marked: bool) -> str:
    title = f' title="{attribute(passage.title)}"' if passage.title else ""
    section = f' section="{attribute(passage.section)}"' if passage.section and passage.section != passage.title else ""
    shown = "".join(_pieces(passage, text, marked))
    return f'<passage n="{number}"{title}{section}{_pages(passage)}>{shown}</passage>'


def _pieces(passage: Passage, text: str, marked: bool) -> Iterator[str]:
    """The text of a passage as shown, with a tag where another page begins."""
    breaks = [(place, page) for place, page in passage.page_breaks if place < len(text)]
    places = [place for place, _ in breaks]
    for number, (start, end) in enumerate(pairwise((0, *places, len(text)))):
        piece = text[start:end]
        shown = fenced(_marked(piece) if marked else piece)
        yield f'<page n="{breaks[number - 1][1]}"/>' if number else ""
        yield _PAGE.sub("&lt;", shown) if breaks else shown


def _pages(passage: Passage) -> str:
    first, last = passage.start_page, passage.end_page
    if first is None:
        return ""
    return f' page="{first}"' if last in {None, first} else f' pages="{first}-{last}"'


@lru_cache(maxsize=1024)  # every stage of a question packs the same passages
def _marked(text: str) -> str:
    return "".join(f"{MARK} {sentence}" if sentence.strip() else sentence for sentence in sentences(text))
