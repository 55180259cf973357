"""Wording of error messages for invalid values, and of numbers."""

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from meta_agent_rag.wording import counted, fault_words


class Shape(BaseModel):
    """One field of each kind used in settings and requests."""

    model_config = ConfigDict(extra="forbid")

    whole: int = 0
    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0
    switch: bool = False
    text: Annotated[str, Field(min_length=1, max_length=3, pattern="^a")] = "a"
    one: Literal["a", "b"] = "a"
    odd: Literal["a, got b", "c"] = "c"
    day: date = date(2026, 1, 1)
    file: Path = Path()
    several: Annotated[list[int], Field(max_length=1)] = []
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("whole", "many", "it must be a whole number"),
        ("share", "half", "it must be a number"),
        ("share", -1, "it must be at least 0"),
        ("share", 2, "it must be at most 1"),
        ("share", float("nan"), "it must be a finite number"),
        ("switch", "perhaps", "it must be true or false"),
        ("text", 7, "it must be text"),
        ("text", "", "it must have at least 1 character"),
        ("text", "aaaa", "it must have at most 3 characters"),
        ("whole", 1.5, "it must be a whole number"),
        ("one", "c", "it must be 'a' or 'b'"),
        ("odd", "d", "it must be 'a, got b' or 'c'"),
        ("day", "2020", "it must be a date"),
        ("file", 4, "it must be a path"),
        ("several", 1, "it must be a list"),
        ("several", [1, 2], "it must have at most 1 item"),
        ("inner", [], "it must be an object"),
        ("other", 1, "unknown field"),
    ],
)
def test_an_error_is_described_in_plain_words(field: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Shape.model_validate({field: value})
    assert fault_words(caught.value.errors()[0]) == words


def test_nouns_agree_with_their_number() -> None:
    assert [counted(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
    assert counted(2, "corpus", "corpora") == "2 corpora"
