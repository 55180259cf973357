"""A question without a plan: what happened is said in the terminal and in the demo."""

from html import escape
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from meta_agent_rag.cli.shared.display import round_steps
from meta_agent_rag.demo.cards import chain
from meta_agent_rag.errors import ModelError
from meta_agent_rag.testing import Scripted
from tests.loop import QUESTION, ask, draft
from tests.unit.test_agent_ablations import OLDER, route

WHOLE = {"chains": [{"of": "", "facts": [OLDER]}], "operator": "last"}


@pytest.mark.parametrize(
    ("plan", "setting", "question", "said"),
    [
        (WHOLE, "LOOP_WITHOUT=derivation", QUESTION, "derivations are left out"),
        (WHOLE, "PLANS=grammar", OLDER, "the question's grammar gives no plan"),
        (ModelError("The server is down."), "PLANS=model", OLDER, "the model call failed: The server is down"),
        (WHOLE, "PLANS=model", OLDER, "the plan was rejected: "),
    ],
    ids=["left out", "no grammar", "failed call", "rejected"],
)
async def test_it_is_said_why_there_is_no_derivation(
    plan: Scripted, setting: str, question: str, said: str, tmp_path: Path
) -> None:
    script = {"write": draft("Oslo"), "plan": plan, "route": route("Oslo")}
    run = await ask(tmp_path, script, "MONITOR_POLICY=vote", setting, question=question)
    derivation = run.answer.rounds[0].derivation
    assert derivation is not None
    assert derivation.why_none.startswith(said)
    assert not derivation.why_none.endswith(".")
    Console(width=300, file=(shown := StringIO())).print(*round_steps(run.answer.rounds[0]))
    assert f"Derivation. None; {said}" in shown.getvalue()
    assert f"No derivation; {escape(said)}" in chain(derivation, {})
