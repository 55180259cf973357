"""`langgraph.json` points LangGraph's server to a graph that runs without an external `Context`."""

import json
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.agent.state import Round
from meta_agent_rag.errors import CorpusError, InputError
from meta_agent_rag.testing.server import helpful, loopback_server

ROOT = Path(__file__).parents[2]
ASKED = {"question": "Which year was it?"}


@pytest.fixture
def graph_factory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The factory named in `langgraph.json`, loaded by module and attribute as the server does."""
    for name, value in {"LLM_PROVIDER": "deepseek", "DEEPSEEK_API_KEY": "none"}.items():
        monkeypatch.setenv(name, value)
    for name in ("ENCODER", "MONITOR_ENCODER"):
        monkeypatch.setenv(name, "hash-64")
    named = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    assert named["dependencies"] == ["."]
    ((_, place),) = named["graphs"].items()
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def open_graph(factory: Any, **configurable: Any) -> AbstractAsyncContextManager[CompiledStateGraph[Any, Any]]:
    made: AbstractAsyncContextManager[CompiledStateGraph[Any, Any]] = factory({"configurable": configurable})
    return made


@pytest.mark.slow
async def test_a_run_needs_only_a_question(graph_factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_server(helpful()) as model:
        monkeypatch.setenv("LLM_BASE_URL", model.base_url)
        async with open_graph(graph_factory, thread_id="1") as graph:
            # the server gives its checkpointer to a copy of the graph and passes plain values to the run
            served = graph.copy(update={"checkpointer": InMemorySaver()})
            config: Any = {"configurable": {"thread_id": "1"}}
            parts = [part async for part in served.astream(ASKED, config, context={"grounded": False})]
            state = (await served.aget_state(config)).values
    assert [next(iter(part)) for part in parts] == ["retrieve", "write", "diagnose"]
    assert state["question"] == ASKED["question"]
    assert isinstance(state["rounds"][0], Round)
    assert len(state["evidence"]) == 5, "found in the sample corpus, which is built on first use"
    vote = state["rounds"][0].vote
    assert len(model.bodies) == 3, "a draft, a plan and one lookup"
    assert vote is not None
    assert [ballot.route for ballot in vote.ballots] == ["quoted_draft", "derivation"]


async def test_inspecting_the_graph_opens_nothing(graph_factory: Any, tmp_path: Path) -> None:
    async with open_graph(graph_factory) as graph:
        assert graph.get_graph().draw_mermaid() == build_graph().get_graph().draw_mermaid()
        assert list(graph.get_input_jsonschema()["properties"]) == ["question"]
        assert graph.get_output_jsonschema()["properties"]["rounds"]
        context = graph.get_context_jsonschema()
        assert context is not None
        assert context["properties"]["corpus"]["default"] == "sample"
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["encoders"], "existed before"


async def test_invalid_run_input_is_reported(graph_factory: Any) -> None:
    async with open_graph(graph_factory) as graph:
        with pytest.raises(InputError, match="empty"):
            await graph.ainvoke({"question": " "})
        with pytest.raises(CorpusError, match="nowhere"):
            await graph.ainvoke(ASKED, context={"corpus": "nowhere"})
