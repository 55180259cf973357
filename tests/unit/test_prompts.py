"""The builder that assembles prompts from YAML."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.errors import PromptError, UnknownNameError
from meta_agent_rag.prompts import SECTIONS, Prompt, check_prompts, phrase, prompt, prompt_files, prompt_names
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


@given(order=st.permutations(SECTIONS), size=st.integers(1, len(SECTIONS)))
def test_the_order_of_the_file_does_not_matter(order: list[str], size: int) -> None:
    sections = {section: f"text of {section}" for section in order[:size]}
    in_order = {section: sections[section] for section in SECTIONS if section in sections}
    assert Prompt(name="p", sections=sections).text() == Prompt(name="p", sections=in_order).text()
    assert Prompt(name="p", sections=sections).digest == Prompt(name="p", sections=in_order).digest


def test_an_instruction_alone_suffices(tmp_path: Path) -> None:
    assert own(tmp_path, "instruction: Do it.").text() == "Do it."


@pytest.mark.parametrize("source", ["role: You are.", "", "[a, b]", "just text"])
def test_the_instruction_is_required(tmp_path: Path, source: str) -> None:
    with pytest.raises(PromptError, match="'write' lacks the required section 'instruction'"):
        own(tmp_path, source)


def test_an_unknown_section_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"unknown section 'instructions'.*closing"):
        own(tmp_path, "instruction: Do it.\ninstructions: Do more.")


@pytest.mark.parametrize("value", ["{a: b}", "[1, 2]", "[[a]]", "12", ""])
def test_a_section_must_be_text(tmp_path: Path, value: str) -> None:
    with pytest.raises(PromptError, match="'goal' of the prompt 'write' must be a text"):
        own(tmp_path, f"instruction: Do it.\ngoal: {value}")


def test_malformed_yaml_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="'write' is not valid YAML"):
        own(tmp_path, "instruction: [")


def test_a_list_becomes_bullets(tmp_path: Path) -> None:
    text = own(tmp_path, "instruction: Do it.\noutput_constraints: [One., Two.]").text()
    assert text == "Do it.\n\nRules:\n- One.\n- Two."


def test_a_missing_value_is_reported() -> None:
    with pytest.raises(PromptError, match=r"'write'.*'mode'"):
        prompt("write").text(question="q", abstention="a")


def test_a_lone_dollar_sign_in_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="'write' cannot be filled in"):
        own(tmp_path, "instruction: It costs $5.").text()
    assert own(tmp_path, "instruction: It costs $$5.", "reask").text() == "It costs $5."


@given(st.text(alphabet="ab $\\{}%\n", max_size=30), st.text(max_size=30))
def test_values_are_inserted_unchanged(question: str, passages: str) -> None:
    template = Prompt(name="p", sections={"instruction": "<$passages>", "closing": "[${question}]"})
    assert template.text(question=question, passages=passages) == f"<{passages}>\n\n[{question}]"


def test_a_value_is_never_read_as_a_template() -> None:
    text = prompt("evidence").text(passages="$question ${question} $$", question="What of $passages?")
    assert "$question ${question} $$" in text
    assert text.endswith("What of $passages?")


def test_an_empty_section_is_omitted() -> None:
    shown = Prompt(name="p", sections={"instruction": "Do it.", "context": "$context", "closing": "Now."})
    assert shown.text(context="") == "Do it.\n\nNow."
    assert shown.text(context="Rain.") == "Do it.\n\nContext:\nRain.\n\nNow."


def test_a_custom_file_replaces_the_built_in_prompt_of_its_name(tmp_path: Path) -> None:
    assert own(tmp_path, "instruction: Mine.").text() == "Mine."
    assert prompt("second_answer", tmp_path) == prompt("second_answer")
    assert "Mine." not in prompt("write").text(mode="m", abstention="a", short_answer_rule="s")


def test_a_missing_prompt_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"PROMPTS_DIR.*missing"):
        prompt("write", tmp_path / "missing")


def test_an_unknown_prompt_name_is_rejected() -> None:
    for name in ("no_such", "phrases", "strategies", "../settings"):
        with pytest.raises(UnknownNameError, match="no prompt"):
            prompt(name)
    with pytest.raises(UnknownNameError, match="no phrase 'no_such'"):
        phrase("no_such")


def test_a_strategy_is_inserted_by_name(tmp_path: Path) -> None:
    named = own(tmp_path, "instruction: Do it.\nreasoning_strategy: chain_of_thought").text()
    assert "step by step" in named
    assert "chain_of_thought" not in named
    assert named.startswith("Do it.\n\nHow to think:\n")
    written = own(tmp_path, "instruction: Do it.\nreasoning_strategy: Think as you like.", "reask").text()
    assert written == "Do it.\n\nHow to think:\nThink as you like."


def test_the_digest_changes_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = own(tmp_path, "instruction: Do it.\ngoal: Win.")
    assert one.digest == own(tmp_path, "goal: Win.\ninstruction: |\n  Do it.\n", "reask").digest
    changed = own(tmp_path / "other", "instruction: Do it.\ngoal: Win!")
    assert one.digest != changed.digest
    assert one.digest != own(tmp_path / "other", "instruction: Do it.\ncontext: Win.", "reask").digest
    assert len(one.digest) == 12
    assert len({prompt(name).digest for name in prompt_names()}) == len(prompt_names())


def test_an_unset_folder_and_valid_files_pass_the_check(tmp_path: Path) -> None:
    check_prompts(None)
    check_prompts(tmp_path)
    (tmp_path / "answerer.yaml").write_text("instruction: Answer $mode for $$5.", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no prompt", encoding="utf-8")
    check_prompts(tmp_path)


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


def test_a_prompt_file_with_another_ending_is_reported(tmp_path: Path) -> None:
    (tmp_path / "answerer.yml").write_text("instruction: Do it.", encoding="utf-8")
    with pytest.raises(PromptError, match=r"answerer\.yml' is not read; give its name the ending \.yaml"):
        check_prompts(tmp_path)


async def test_prompts_are_checked_before_an_engine_opens(tmp_path: Path) -> None:
    (tmp_path / "wrote.yaml").write_text("instruction: Do it.", encoding="utf-8")
    with pytest.raises(PromptError, match=r"wrote\.yaml' replaces no prompt"):
        async with open_engine(Settings.load([f"PROMPTS_DIR={tmp_path}"])):
            pass


def test_a_path_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"PROMPTS_DIR '.*nowhere' is not a folder"):
        check_prompts(tmp_path / "nowhere")


def test_every_built_in_prompt_passes_as_a_custom_prompt(tmp_path: Path) -> None:
    for name, file in prompt_files().items():
        (tmp_path / f"{name}.yaml").write_text(file.read_text("utf-8"), encoding="utf-8")
    check_prompts(tmp_path)
