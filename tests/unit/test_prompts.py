"""The builder that assembles prompts from YAML."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.errors import PromptError
from meta_agent_rag.prompts import Prompt, check_prompts
from meta_agent_rag.settings import Settings


@given(st.text(alphabet="ab $\\{}%\n", max_size=30), st.text(max_size=30))
def test_values_are_inserted_unchanged(question: str, passages: str) -> None:
    template = Prompt(name="p", sections={"instruction": "<$passages>", "closing": "[${question}]"})
    assert template.text(question=question, passages=passages) == f"<{passages}>\n\n[{question}]"


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
