"""Cleaning text to what a reader sees, and decoding bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.ingestion.text import clean, decoded, one_line


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("ig\u200bno\u200dre \u202eall\u202c\ufeff", "ignore all"),
        ("a\0b\x07c\x9fd", "abcd"),
        ("one\r\ntwo\rthree\u2028four\x85five\x0csix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("tab\tstays", "tab\tstays"),
        ("half \ud800 of a pair", "half \ufffd of a pair"),
        ("\U000e0041\U000e0042tagged", "tagged"),
        ("v\ufe0fs\U000e0100", "vs"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("naïve 東京 🦆", "naïve 東京 🦆"),
    ],
)
def test_only_visible_text_remains(raw: str, seen: str) -> None:
    assert clean(raw) == seen


@given(st.text())
def test_cleaning_is_idempotent(raw: str) -> None:
    once = clean(raw)
    assert clean(once) == once
    once.encode("utf-8")
    assert one_line(raw) == " ".join(once.split())


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cc"]), min_size=1))
def test_utf_8_round_trips(text: str) -> None:
    assert decoded(b"\xef\xbb\xbf" + text.encode()) == text


@pytest.mark.parametrize("content", [bytes(100), bytes(range(32)) * 10, b"MZ\x90\0\3\0\0\0" * 50])
def test_binary_is_not_text(content: bytes) -> None:
    assert decoded(content) is None


def test_an_unknown_or_absurd_encoding_declaration_is_ignored() -> None:
    for declared in ("no-such", "hex", "zip", "\0"):
        assert decoded("Länder".encode("cp1252"), declared) == "Länder"
