"""The graph in other people's hands: as a subgraph, streamed, checkpointed, synchronous, and in LangGraph's server."""

import json
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from meta_agent_rag import Settings, build_graph
from meta_agent_rag.agent.state import Round
from meta_agent_rag.errors import CorpusError, InputError
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.server import quoting
from tests.loop import EVIDENCE, QUESTION, WRONG, settings_in
from tests.loopback import Serve

ROOT = Path(__file__).parents[2]
ASKED: Any = {"question": QUESTION}


class Films(BaseRetriever):
    """A retriever of LangChain's that always finds the same two documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=one.text, metadata={"title": one.title}) for one in EVIDENCE]


class Desk(TypedDict, total=False):
    """The state of a parent graph."""

    question: str
    answer: str
    short_answer: str


def resources(folder: Path, **fields: Any) -> dict[str, Any]:
    return {"settings": settings_in(folder, "MONITOR_ENCODER=hash-64"), "model": ScriptedModel(WRONG), **fields}


def desk(graph: Any, **options: Any) -> Any:
    parent = StateGraph(Desk)
    parent.add_node("research", graph)
    parent.add_edge(START, "research")
    parent.add_edge("research", END)
    return parent.compile(**options)


async def test_it_is_a_node_that_needs_only_a_question(tmp_path: Path) -> None:
    parent = desk(build_graph(retriever=Films(), **resources(tmp_path)), checkpointer=InMemorySaver())
    final = await parent.ainvoke(ASKED, {"configurable": {"thread_id": "1"}})
    assert final == {"question": QUESTION, "answer": "She was born in Oslo [2].", "short_answer": "Oslo"}


async def test_another_question_on_a_thread_is_answered_anew(tmp_path: Path) -> None:
    given = resources(tmp_path, evidence=EVIDENCE)
    graph = build_graph(**given, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    first = await graph.ainvoke(ASKED, config)
    again = await graph.ainvoke(ASKED | {"question": "Where was Mira Holt born?"}, config)
    assert len(given["model"].requests) == len(first["calls"]) + len(again["calls"])
    assert [len(again[name]) for name in ("calls", "rounds", "evidence")] == [4, 2, 2]


def test_it_runs_without_an_event_loop(tmp_path: Path) -> None:
    graph = build_graph(evidence=EVIDENCE, **resources(tmp_path))
    assert graph.invoke(ASKED)["short_answer"] == "Oslo"
    assert desk(graph).invoke(ASKED)["short_answer"] == "Oslo"
    assert [next(iter(part)) for part in graph.stream(ASKED)][:3] == ["retrieve", "write", "diagnose"]


async def test_updates_and_rounds_are_streamed(tmp_path: Path) -> None:
    graph = build_graph(evidence=EVIDENCE, **resources(tmp_path))
    parts = [part async for part in graph.astream(ASKED, stream_mode=["updates", "custom"])]
    nodes = [next(iter(part)) for mode, part in parts if mode == "updates"]
    rounds: list[Any] = [part for mode, part in parts if mode == "custom"]
    assert nodes == ["retrieve", "write", "diagnose", "reasoning_error", "write", "diagnose"]
    assert [(type(one), one.index, one.satisfied) for one in rounds] == [(Round, 0, False), (Round, 1, True)]


async def test_messages_of_every_call_are_streamed(tmp_path: Path) -> None:
    parent = desk(build_graph(evidence=EVIDENCE, **resources(tmp_path)))
    parts = [part async for part in parent.astream(ASKED, stream_mode="messages", subgraphs=True)]
    said = [(metadata["langgraph_node"], message.content) for _, (message, metadata) in parts]
    assert {node for node, _ in said} == {"write", "diagnose"}
    assert "Oslo" in "".join(text for node, text in said if node == "write")


STRICT = """
import asyncio, sys
from langgraph.checkpoint.memory import InMemorySaver
from meta_agent_rag import build_graph
from tests.integration.test_langgraph import ASKED, EVIDENCE, resources
from pathlib import Path

async def main():
    given = resources(Path(sys.argv[1]), evidence=EVIDENCE)
    graph = build_graph(**given, checkpointer=InMemorySaver(), interrupt_after="*")
    config = {"configurable": {"thread_id": "1"}}
    state = await graph.ainvoke(ASKED, config)
    while (await graph.aget_state(config)).next:
        state = await graph.ainvoke(None, config)
    whole = await build_graph(**resources(Path(sys.argv[1]), evidence=EVIDENCE)).ainvoke(ASKED)
    print(state["short_answer"], len(given["model"].requests), len(state["calls"]))
    print(len(whole["calls"]), all(type(one).__name__ == "Round" for one in state["rounds"]))

asyncio.run(main())
"""


def test_a_run_survives_a_checkpoint_after_every_node(tmp_path: Path) -> None:
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", STRICT, str(tmp_path)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "Oslo 4 4\n4 True\n", done.stderr
    assert "msgpack" not in done.stderr.lower(), "a type is not allowed"


@pytest.mark.parametrize("asked", [{}, {"question": " "}, {"question": None}])
async def test_a_run_without_a_question_is_told_what_to_do(asked: Any) -> None:
    with pytest.raises(InputError, match=r'given no question; call it with \{"question": "..."\}\.'):
        await build_graph(evidence=EVIDENCE).ainvoke(asked | {"other": 1})


async def test_a_wrong_resource_is_named(tmp_path: Path) -> None:
    for given, fault in (
        ({"model": "gpt-4"}, "must be a chat model"),
        ({"retriever": 3}, "int is no retriever"),
        ({"evidence": ["text"]}, "Evidence must be passages"),
        ({"corpus": "nowhere"}, "nowhere"),
    ):
        with pytest.raises((InputError, CorpusError), match=fault):
            await build_graph(**resources(tmp_path, **given)).ainvoke(ASKED)


@pytest.fixture
def loopback(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that answers for the model that the environment names."""
    server = serve(quoting())
    monkeypatch.setenv("LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("FLASH_MODEL", "scripted")
    for name in ("ENCODER", "MONITOR_ENCODER"):
        monkeypatch.setenv(name, "hash-64")
    return server


def test_the_page_shows_a_parent_graph_that_runs(
    loopback: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/langgraph.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 30
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out == "Selwick Light was designed by Orla Finnimore in 1887 [1]. no ticket\n"
    assert loopback.bodies


def served() -> Any:
    """The graph that `langgraph.json` names, loaded by module and attribute as the server does."""
    named = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    assert named["dependencies"] == ["."]
    ((_, place),) = named["graphs"].items()
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


@pytest.mark.slow
async def test_the_served_graph_answers_from_the_sample(loopback: Any) -> None:
    # the server gives its checkpointer to a copy of the graph and passes plain values to the run
    graph = served().copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "1", "settings": Settings.load()}}
    final = await graph.ainvoke({"question": "Which year was it?"}, config, context={"grounded": False})
    assert len(final["evidence"]) == 5, "found in the sample corpus, which is built on first use"
    assert final["answer"]
