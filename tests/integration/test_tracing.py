"""A question is one trace of LangChain's: nodes and model calls with their stages and tokens."""

from pathlib import Path

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from meta_agent_rag import Passage, answer, grounded_answer
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel, universal_reply

LIGHT = Passage.of("Selwick Light", "Selwick Light was designed by Anna Brandt in 1871.")
QUESTION = "Who designed Selwick Light?"
REPLY = universal_reply("Anna Brandt", quotes=[LIGHT.text], answer="Selwick Light was designed by Anna Brandt [1].")


class InMemoryTracer(BaseTracer):
    """Keeps whole traces."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def below(run: Run) -> list[Run]:
    """All runs below a run."""
    return [one for child in run.child_runs for one in (child, *below(child))]


async def test_a_question_is_one_trace_with_stages_and_tokens(tmp_path: Path) -> None:
    tracer, model = InMemoryTracer(), ScriptedModel({"write": REPLY, "route": REPLY, "second_answer": REPLY})
    settings = Settings.load(marag_data_dir=tmp_path, response_cache=False)
    found = await answer(
        QUESTION, evidence=[LIGHT], settings=settings, model=model, config={"callbacks": [tracer], "tags": ["mine"]}
    )
    (root,) = tracer.roots
    assert root.name == "metarag"
    assert "mine" in (root.tags or [])
    nodes = [run.name for run in root.child_runs]
    assert nodes[:3] == ["retrieve", "write", "diagnose"]
    calls = [run for run in below(root) if run.run_type in ("llm", "chat_model")]
    assert sorted(call.name for call in calls) == sorted(row.stage for row in found.calls)
    for call in calls:
        about = (call.extra or {})["metadata"]
        assert about["stage"] == call.name
        assert about["tier"] in ("flash", "pro")
        message = (call.outputs or {})["generations"][0][0]["message"]["kwargs"]
        assert message["usage_metadata"]["output_tokens"] > 0
    write = next(call for call in calls if call.name == "write")
    assert any(run.name == "write" and write in below(run) for run in root.child_runs), "it lies below its node"


async def test_a_grounded_answer_and_its_check_are_one_trace(tmp_path: Path) -> None:
    tracer, model = InMemoryTracer(), ScriptedModel({"write": REPLY, "route": REPLY, "second_answer": REPLY})
    settings = Settings.load(marag_data_dir=tmp_path, response_cache=False, claim_check="critic")
    await grounded_answer(QUESTION, evidence=[LIGHT], settings=settings, model=model, config={"callbacks": [tracer]})
    (root,) = tracer.roots
    assert root.name == "grounded_answer"
    called = {run.name for run in below(root) if run.run_type in ("llm", "chat_model")}
    assert {"write", "check_claims"} <= called
