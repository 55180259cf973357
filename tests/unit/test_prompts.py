"""The builder that assembles prompts from YAML."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.errors import PromptError
from meta_agent_rag.prompts import SECTIONS, Prompt, check_prompts, prompt
from meta_agent_rag.settings import Settings


def own(folder: Path, source: str, name: str = "write") -> Prompt:
    """A custom prompt, read from a file."""
    (folder / f"{name}.yaml").write_text(source, encoding="utf-8")
    return prompt(name, folder)


def test_sections_have_a_fixed_order(tmp_path: Path) -> None:
    lines = [f"{section}: text of {section}" for section in reversed(SECTIONS)]
    text = own(tmp_path, "\n".join(lines)).text()
    places = [text.index(f"text of {section}") for section in SECTIONS]
    assert places == sorted(places)
    assert SECTIONS[0] == "role"
    assert SECTIONS[-1] == "closing"


@given(st.text(alphabet="ab $\\{}%\n", max_size=30), st.text(max_size=30))
def test_values_are_inserted_unchanged(question: str, passages: str) -> None:
    template = Prompt(name="p", sections={"instruction": "<$passages>", "closing": "[${question}]"})
    assert template.text(question=question, passages=passages) == f"<{passages}>\n\n[{question}]"


def test_a_custom_file_replaces_the_built_in_prompt_of_its_name(tmp_path: Path) -> None:
    assert own(tmp_path, "instruction: Mine.").text() == "Mine."
    assert prompt("second_answer", tmp_path) == prompt("second_answer")
    assert "Mine." not in prompt("write").text(mode="m", abstention="a", short_answer_rule="s")


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("answerer", "instruction: Do it.\nrules: Now.", r"'answerer' has an unknown section 'rules'"),
        (
            "answerer",
            "instruction: Do $everything.",
            r"'answerer' uses the unknown placeholder \$everything; known ones: .*\$mode",
        ),
        ("summarizer", "instruction: For $5.", r"section 'instruction' of the prompt 'summarizer' has a single '\$'"),
        ("rewriter", "role: You.", "'rewriter' lacks the required section 'instruction'"),
        ("anwserer", "instruction: Do it.", r"anwserer\.yaml' replaces no prompt; .*answerer"),
        ("phrases", "instruction: Do it.", r"phrases\.yaml' replaces no prompt"),
    ],
)
def test_a_faulty_prompt_is_reported_before_it_is_used(tmp_path: Path, name: str, source: str, message: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(source, encoding="utf-8")
    with pytest.raises(PromptError, match=message):
        check_prompts(tmp_path)


async def test_prompts_are_checked_before_an_engine_opens(tmp_path: Path) -> None:
    (tmp_path / "wrote.yaml").write_text("instruction: Do it.", encoding="utf-8")
    with pytest.raises(PromptError, match=r"wrote\.yaml' replaces no prompt"):
        async with open_engine(Settings.load([f"PROMPTS_DIR={tmp_path}"])):
            pass
