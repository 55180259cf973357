"""Wording of error messages for invalid values, and of numbers."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from meta_agent_rag.wording import fault_words


class Shape(BaseModel):
    """One field of each kind used in settings and requests."""

    model_config = ConfigDict(extra="forbid")

    whole: int = 0
    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0
    switch: bool = False
    text: Annotated[str, Field(min_length=1, max_length=3, pattern="^a")] = "a"
    one: Literal["a", "b"] = "a"
    several: Annotated[list[int], Field(max_length=1)] = []
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("whole", "many", "it must be a whole number"),
        ("share", 2, "it must be at most 1"),
        ("share", float("nan"), "it must be a finite number"),
        ("switch", "perhaps", "it must be true or false"),
        ("text", "aaaa", "it must have at most 3 characters"),
        ("one", "c", "it must be 'a' or 'b'"),
        ("several", [1, 2], "it must have at most 1 item"),
        ("inner", [], "it must be an object"),
        ("other", 1, "unknown field"),
    ],
)
def test_a_fault_is_described_in_plain_words(field: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Shape.model_validate({field: value})
    assert fault_words(caught.value.errors()[0]) == words
