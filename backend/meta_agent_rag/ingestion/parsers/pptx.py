"""PowerPoint presentations (.pptx), with python-pptx: one page per slide, including its notes."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..content import archive
from ..content.grid import Cell, grid_rows
from ..content.tables import table_blocks
from ..document import Block, Document
from ..text import one_line
from . import File, Parser

if TYPE_CHECKING:
    from pptx.slide import Slide

_SUFFIXES = (".pptx",)
_DEFAULT_TITLE = "PowerPoint Presentation"
"""Default titles of the library and of PowerPoint."""


def _recognises(file: File) -> bool:
    return archive.holds(file, "ppt/presentation.xml")


def _parse(file: File) -> Document:
    from pptx import Presentation

    archive.check(file)
    presentation = Presentation(io.BytesIO(file.content))
    slides = list(presentation.slides)
    blocks = tuple(block for number, slide in enumerate(slides, start=1) for block in _slide(slide, number))
    stated = one_line(presentation.core_properties.title or "")
    stated = "" if stated == _DEFAULT_TITLE else stated
    first = next((block.section for block in blocks if block.section), "")
    return Document(title=stated or first or file.stem, kind="pptx", blocks=blocks, pages=len(slides))


def _slide(slide: "Slide", number: int) -> Iterator[Block]:
    """The title first, then text and tables in slide order, then the notes."""
    heading = slide.shapes.title
    section = one_line(heading.text_frame.text) if heading is not None else ""
    if section:
        yield Block(text=section, section=section, page=number)
    for shape in _shapes(slide.shapes):
        if heading is not None and shape.shape_id == heading.shape_id:
            continue
        if getattr(shape, "has_table", False):
            texts = list(table_blocks(grid_rows(map(_cells, shape.table.rows))))
        else:
            texts = [shape.text_frame.text] if shape.has_text_frame else []
        yield from (Block(text=text, section=section or None, page=number) for text in texts if text.strip())
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text
        if notes.strip():
            yield Block(text=notes, section=section or None, page=number)


def _cells(row: Any) -> list[Cell]:
    """The cells of a row that are not covered by merged cells."""
    return [Cell(cell.text, cell.span_width, cell.span_height) for cell in row.cells if not cell.is_spanned]


def _shapes(shapes: Any) -> Iterator[Any]:
    """All shapes, including those in groups; without recursion, because groups may be nested to any depth."""
    waiting = list(reversed(list(shapes)))
    while waiting:
        shape = waiting.pop()
        if hasattr(shape, "shapes"):
            waiting.extend(reversed(list(shape.shapes)))
        else:
            yield shape


PARSER = Parser(kind="pptx", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
