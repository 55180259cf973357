"""The name that a client gives a file, as one that is safe in any folder."""

import re
import unicodedata

_LONGEST_BYTES = 120
_LONGEST_SUFFIX = 12
_WITHOUT_NAME = "document"


def safe_name(given: str) -> str:
    """The last part of a path, without what a file system, a header or a terminal could mistake for something else.

    >>> safe_name("../../etc/passwd")
    'passwd'
    >>> safe_name("C:\\\\notes\\\\a\\r\\nb.txt")
    'a__b.txt'
    """
    last = re.split(r"[/\\]", given)[-1]
    writable = unicodedata.normalize("NFC", last.encode("utf-8", "replace").decode())
    plain = "".join("_" if unicodedata.category(character)[0] == "C" else character for character in writable)
    name = re.sub(r'[<>:"|?*]', "_", plain).strip(" .")
    return _shortened(name) or _WITHOUT_NAME


def _shortened(name: str) -> str:
    if len(name.encode()) <= _LONGEST_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f".{suffix}" if dot and len(suffix) <= _LONGEST_SUFFIX else ""
    kept = (stem if ending else name).encode()[: _LONGEST_BYTES - len(ending.encode())]
    return kept.decode("utf-8", "ignore").strip(" .") + ending
