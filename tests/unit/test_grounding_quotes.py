"""Which parts of a quote occur in the passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.quotes import as_written, is_verbatim

TEXT = (
    "Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt. Nobody says that she left the city. "
    "She won two prizes in 1912! Later she moved."
)
WHOLE = f"Low Tide\n{TEXT}"


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("Later she moved.", ("Later she moved.",)),
        (f'<passage n="2" title="Low Tide">{TEXT}</passage>', (TEXT,)),
        ("Nobody says that she left the city. She sailed to Bergen with fourteen crates of film.", (
            "Nobody says that she left the city.",
        )),
        ("She sailed to Bergen with fourteen crates of film. It was never found again there.", ()),
        ("Later she moved. So he said.", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_the_verbatim_parts_of_a_quote_are_kept(quote: str, kept: tuple[str, ...]) -> None:
    assert as_written(quote, [WHOLE], [TEXT]) == kept


@given(st.text(max_size=80), st.text(max_size=200))
def test_kept_parts_are_verbatim(quote: str, text: str) -> None:
    assert all(is_verbatim(part, [text]) for part in as_written(quote, [text], [text]))
