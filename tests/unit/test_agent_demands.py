"""What the loop demands of a model, unless the settings say."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from meta_agent_rag.agent.voting import small_model_defaults, voters
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted
from tests.loop import ask, draft
from tests.unit.test_agent_facts import CHAIN, QUESTION, route

PACKAGED, ENTIRE = (("plain_pass",), "grammar"), (5, "model")


def demands(folder: Path, *assignments: str) -> tuple[object, ...]:
    given = small_model_defaults(Settings.load([f"MARAG_DATA_DIR={folder}", "DEEPSEEK_API_KEY=none", *assignments]))
    assert given.routes == tuple(voters(given))
    return (given.routes if len(voters(given)) == 1 else len(voters(given))), given.plans


@pytest.mark.parametrize(
    ("assignments", "found"),
    [
        (["LLM_PROVIDER=deepseek"], ENTIRE),
        (["LLM_PROVIDER=embedded"], PACKAGED),
        (["LLM_PROVIDER=embedded", "EMBEDDED_MODEL=smollm2-135m"], PACKAGED),
        (["LLM_PROVIDER=embedded", "EMBEDDED_MODEL=qwen2.5-1.5b"], ENTIRE),
        (["LLM_PROVIDER=embedded", "EMBEDDED_MODEL_PATH=own.gguf"], ENTIRE),
        (["LLM_PROVIDER=embedded", "PLANS=model", "ROUTES=step_by_step"], (("step_by_step",), "model")),
        (["LLM_PROVIDER=deepseek", "PLANS=grammar"], (5, "grammar")),
    ],
)
def test_demands_fit_the_model(tmp_path: Path, assignments: list[str], found: tuple[object, ...]) -> None:
    assert demands(tmp_path, *assignments) == found


def test_each_stage_is_judged_by_its_own_model(tmp_path: Path) -> None:
    roles = tmp_path / "roles.yaml"
    roles.write_text("roles: {look_up: strong}\nendpoints: {strong: {provider: deepseek, model: deepseek-v4-pro}}\n")
    assert demands(tmp_path, "LLM_PROVIDER=embedded", f"MODEL_ROLES={roles}") == (("plain_pass",), "model")


@pytest.mark.parametrize(
    ("setting", "absent"),
    [
        ("PLANS=grammar", {"plan"}),
        ("LOOP_WITHOUT=derivation", {"plan", "look_up"}),
        ("LOOP_WITHOUT=vote", {"route"}),
        ("LOOP_WITHOUT=derivation+vote", {"plan", "look_up", "route"}),
    ],
)
async def test_a_part_that_is_left_out_makes_no_call(setting: str, absent: set[str], tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {"write": draft("Oslo"), "plan": CHAIN, "look_up": "Rome", "route": route("Oslo")}
    whole = await ask(tmp_path / "whole", script, "MONITOR_POLICY=vote", question=QUESTION)
    assert {"plan", "look_up", "route"} <= set(whole.stages)
    less = await ask(tmp_path / "less", script, "MONITOR_POLICY=vote", setting, question=QUESTION)
    assert not absent & set(less.stages)
