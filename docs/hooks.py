"""What the site does to a page: the repository's files, which it does not hold, are named rather than linked."""

import re
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page before it becomes HTML."""
    folder = (_DOCS / page.file.src_uri).parent

    def named(found: re.Match[str]) -> str:
        target = (folder / found[3]).resolve()
        held = target.is_relative_to(_DOCS) and target.is_file() and "examples" not in target.parts
        return found[0] if held or found[1] else found[2]

    return _LINK.sub(named, markdown)
