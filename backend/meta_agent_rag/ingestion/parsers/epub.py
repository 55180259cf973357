"""E-books (.epub): the chapters in the order of the spine, each parsed as HTML."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ..content import archive
from ..document import Block, Document, Refused
from ..text import decoded, one_line
from . import File, Parser
from .html import markup_blocks

if TYPE_CHECKING:
    from lxml.etree import _Element

_SUFFIXES = (".epub",)
_KIND = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})
_PROTECTED = b"EncryptedData"
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
"""Algorithms that are only used to obfuscate fonts."""


def _recognises(file: File) -> bool:
    return archive.stated_kind(file) == _KIND or archive.holds(file, _CONTAINER)


def _parse(file: File) -> Document:
    with archive.opened(file) as book:
        _refuse_protected(book)
        package_path = next(iter(_attributes(_xml(book, _CONTAINER), "rootfile", "full-path")), "")
        package = _xml(book, package_path)
        title = next((one_line(one.text or "") for one in package.iterfind(".//{*}title")), "")
        folder = posixpath.dirname(package_path)
        blocks: list[Block] = []
        for path in _spine(package):
            section = blocks[-1].section if blocks else None
            for block in _chapter(book, posixpath.normpath(posixpath.join(folder, unquote(path)))):
                section = block.section or section
                blocks.append(Block(text=block.text, section=section))
    return Document(title=title or file.stem, kind="epub", blocks=tuple(blocks))


def _refuse_protected(book: zipfile.ZipFile) -> None:
    try:
        statement = book.read("META-INF/encryption.xml")
    except KeyError:
        return
    if statement.count(_PROTECTED) and not any(font in statement for font in _FONTS):
        raise Refused("encrypted", "it is copy-protected; use a copy without protection")


def _xml(book: zipfile.ZipFile, path: str) -> "_Element":
    from lxml import etree

    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
        root = etree.fromstring(book.read(path), parser)
    except (KeyError, etree.XMLSyntaxError) as error:
        raise Refused("unreadable", f"it is not a valid book ({path!r} is missing or damaged)") from error
    if root is None:
        raise Refused("unreadable", f"it is not a valid book ({path!r} is empty)")
    return root


def _spine(package: "_Element") -> Iterator[str]:
    """The addresses of the chapters in reading order."""
    items = {
        item.get("id"): item.get("href", "")
        for item in package.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _CHAPTERS and "nav" not in (item.get("properties") or "").split()
    }
    for name in _attributes(package, "itemref", "idref"):
        if items.get(name):
            yield items[name]


def _attributes(root: "_Element", element: str, name: str) -> list[str]:
    return [one.get(name, "") for one in root.iterfind(f".//{{*}}{element}")]


def _chapter(book: zipfile.ZipFile, path: str) -> Iterator[Block]:
    try:
        content = book.read(path)
    except KeyError:
        return  # a chapter that the book lists but does not contain
    yield from markup_blocks(decoded(content) or "")


PARSER = Parser(kind="epub", suffixes=_SUFFIXES, priority=0, recognises=_recognises, parse=_parse)
