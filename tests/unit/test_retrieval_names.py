"""Comparing names the way readers do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.text.names import mentioned as names_mentioned
from meta_agent_rag.text.names import name_keys, plain


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("Crash (2004 film)", [("crash 2004 film", True), ("crash", False)]),
        ("Crash", [("crash", True)]),
        ("(500) Days", [("500 days", True)]),
        ("(film)", [("film", True)]),
        ("", []),
        ("?!", []),
        ("It", []),
        ("The (band)", [("the band", True)]),
        ("The Who", [("the who", True)]),
    ],
)
def test_the_name_keys_of_a_title(title: str, keys: list[tuple[str, bool]]) -> None:
    assert [tuple(key) for key in name_keys(title)] == keys


def mentioned(text: str, *names: str) -> list[str]:
    (found,) = names_mentioned([text], lambda keys: {key for key in keys if key in names})
    return list(found)


def test_a_name_is_capitalised_if_the_text_has_capitals() -> None:
    assert mentioned("The band played Crash in Band", "band", "crash") == ["crash", "band"]
    assert mentioned("the lead of crash", "crash") == ["crash"]
    assert mentioned("东京 is big", "东京") == ["东京"]


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_is_handled(text: str, title: str) -> None:
    keys = [key.key for key in name_keys(title)]
    assert all(key.strip() == key and key for key in keys)
    found = mentioned(text, *keys)
    assert set(found) <= set(keys)
    assert all(f" {name} " in plain(text) for name in found)
