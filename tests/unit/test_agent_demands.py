"""What the loop demands of a model, unless the settings say."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from meta_agent_rag.agent.voting import small_model_defaults, voters
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted
from tests.loop import ask, draft
from tests.unit.test_agent_ablations import BY_GRAMMAR, CHAIN, OLDER, route

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


async def test_with_grammar_alone_no_plan_is_requested(tmp_path: Path) -> None:
    script: Mapping[str, Scripted] = {"write": draft("Oslo"), "plan": CHAIN, "look_up": "Oslo", "route": route("Oslo")}
    run = await ask(tmp_path / "open", script, "MONITOR_POLICY=vote", "PLANS=grammar", question=OLDER)
    assert "plan" not in run.stages
    assert (planned := run.answer.rounds[0].derivation) is not None
    assert planned.dropped == "the question's grammar gives no plan"
    run = await ask(tmp_path / "held", script, "MONITOR_POLICY=vote", "PLANS=grammar", question=BY_GRAMMAR)
    assert "plan" not in run.stages
    assert "look_up" in run.stages
