"""The contract of every prompt file."""

import re
from string import Template

import pytest

from meta_agent_rag.errors import PromptError
from meta_agent_rag.prompts import prompt, prompt_names


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_can_be_filled_in(name: str) -> None:
    loaded = prompt(name)
    assert loaded.name == name
    assert loaded.sections["instruction"].strip()
    assert all(text.strip() for text in loaded.sections.values())
    wanted = {value for text in loaded.sections.values() for value in Template(text).get_identifiers()}
    text = loaded.text(**{value: f"value of {value}" for value in wanted})
    assert "$" not in text
    for value in wanted:
        assert f"value of {value}" in text
        with pytest.raises(PromptError, match=value):
            loaded.text(**dict.fromkeys(wanted - {value}, "x"))


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_that_asks_for_a_short_answer_states_the_shared_rule(name: str) -> None:
    """All methods are scored by the short answer, so all state the same rule for it."""
    sections = prompt(name).sections
    if re.search(r"short[_ ]answer", sections.get("output_format", "")):
        assert any("$short_answer_rule" in text for text in sections.values())
