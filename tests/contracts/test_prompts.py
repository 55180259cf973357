"""The contract of every prompt file, and that code refers only to prompts that exist."""

import ast
import re
from functools import cache
from pathlib import Path
from string import Template
from typing import get_args

import pytest
import yaml

from meta_agent_rag.agent.state import AnswerMode
from meta_agent_rag.errors import PromptError
from meta_agent_rag.llm.stages import stage
from meta_agent_rag.prompts import phrase, prompt, prompt_names
from meta_agent_rag.settings import Settings

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("backend/meta_agent_rag", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
PLACES = {"prompt": 0, "phrase": 0, "messages": 1, "task": 1, "ainvoke": 0, "aparse": 0}
"""Functions that take the name of a prompt, phrase or stage, and the argument's position."""

CONVERSATION = {"summarize": "summarizer", "rewrite_query": "rewriter"}
"""Stages beside the loop, with their prompts."""


@cache
def nodes() -> tuple[ast.AST, ...]:
    """All syntax nodes of the code."""
    return tuple(node for path in SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def literals(function: str) -> set[str]:
    """The literal names that code passes to a function."""
    names: set[str] = set()
    for node in nodes():
        if not isinstance(node, ast.Call) or len(node.args) <= PLACES[function]:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = node.args[PLACES[function]]
        if called == function:
            names |= texts(given)
    return names


def texts(given: ast.expr) -> set[str]:
    """A literal text, or both branches of a conditional expression."""
    parts = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def assigned(variable: str) -> set[str]:
    """The names that code assigns to a variable."""
    return {
        text
        for node in nodes()
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == variable for target in node.targets)
        for text in texts(node.value)
    }


def keywords(argument: str) -> set[str]:
    """The literal names that code passes by keyword."""
    calls = (node for node in nodes() if isinstance(node, ast.Call))
    return {text for call in calls for given in call.keywords if given.arg == argument for text in texts(given.value)}


def test_prompts_are_discovered() -> None:
    assert len(prompt_names()) >= 10


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
def test_a_prompt_for_json_output_mentions_json(name: str) -> None:
    output = prompt(name).sections.get("output_format")
    assert output is None or "JSON" in output, "the JSON mode of some providers requires the word in the prompt"


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_that_asks_for_a_short_answer_states_the_shared_rule(name: str) -> None:
    """All methods are scored by the short answer, so all state the same rule for it."""
    sections = prompt(name).sections
    if re.search(r"short[_ ]answer", sections.get("output_format", "")):
        assert any("$short_answer_rule" in text for text in sections.values())


def test_the_rule_for_short_answers_is_stated_by_name() -> None:
    stating = {name for name in prompt_names() if "$short_answer_rule" in "".join(prompt(name).sections.values())}
    assert stating >= {"write", "rewrite", "standard_rag", "closed_book", "chain_of_thought", "react", "conclude"}


@pytest.mark.slow
def test_every_prompt_used_in_code_exists() -> None:
    asked = literals("prompt") | literals("messages") | literals("task")
    assert {"system", "evidence", "question", "reask", "evaluate", "second_answer", "short_answer"} <= asked
    assert asked <= set(prompt_names())


def test_every_phrase_used_in_code_exists() -> None:
    asked = literals("phrase") | {f"mode_{mode}" for mode in get_args(AnswerMode)}
    assert {"not_found", "abstain", "best_guess"} <= asked
    for key in asked:
        assert phrase(key).strip()


def test_every_stage_used_in_code_exists() -> None:
    asked = literals("ainvoke") | literals("aparse") | assigned("stage")
    assert {"write", "rewrite", "second_answer", "evaluate", "short_answer", "baseline"} <= asked
    for name in asked:
        assert stage(name, Settings.load()).max_tokens > 0


def test_every_stage_of_the_loop_has_a_prompt_with_its_name() -> None:
    listed = yaml.safe_load((ROOT / "backend/meta_agent_rag/llm/stages.yaml").read_text(encoding="utf-8"))
    assert set(listed) - {"route", *CONVERSATION} <= set(prompt_names())
    assert set(CONVERSATION.values()) <= set(prompt_names())
    assert assigned("stage") <= set(prompt_names())


def test_every_prompt_is_used() -> None:
    asked = literals("prompt") | literals("messages") | literals("task") | assigned("stage") | assigned("system")
    asked |= keywords("prompt")
    methods = {path.stem for path in (ROOT / "benchmarks/methods").glob("*.py")}
    assert set(prompt_names()) <= asked | methods
