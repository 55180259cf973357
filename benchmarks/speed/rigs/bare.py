"""A LangGraph graph with ChatOpenAI and nothing else: the baseline for the package's overhead."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from meta_agent_rag.datasets import Question, load_questions

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class _State(TypedDict):
    prompts: list[list[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class BareGraph:
    """One node per call, in sequence."""

    compiled: "CompiledStateGraph[_State]"
    calls: int

    async def ask(self, question: Question) -> None:
        """Make the calls, with prompts of about the size of ours: the context, the question, and a task."""
        shown = "\n".join(f"{paragraph.title}: {paragraph.text}" for paragraph in question.paragraphs)
        task = "Answer the question in JSON, with the sentences that the answer rests on. " * 12
        prompts = [
            [("system", "You answer questions."), ("user", f"{shown}\n{question.text}\n{task}{call}")]
            for call in range(self.calls)
        ]
        await self.compiled.ainvoke({"prompts": prompts})


@asynccontextmanager
async def bare_graph(address: str, calls: int) -> AsyncIterator[BareGraph]:
    """A graph that makes N calls of the endpoint for every question."""
    import openai
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    client = openai.DefaultAsyncHttpxClient(timeout=None)
    key = SecretStr("loopback")
    model = ChatOpenAI(model="bare", base_url=address, api_key=key, max_retries=0, http_async_client=client)

    async def called(prompt: list[tuple[str, str]]) -> None:
        await model.ainvoke(prompt, max_tokens=500, temperature=0.0)

    yield _chain(calls, called)
    await client.aclose()


def idle_graph(calls: int) -> BareGraph:
    """The same graph without the calls: what is left is LangGraph's own work."""

    async def called(_: list[tuple[str, str]]) -> None:
        """Return at once."""

    return _chain(calls, called)


def _chain(calls: int, called: Callable[[list[tuple[str, str]]], Awaitable[None]]) -> BareGraph:
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(_State)
    names = [f"call{number}" for number in range(calls)]
    for number, name in enumerate(names):

        async def node(state: _State, number: int = number) -> dict[str, Any]:
            await called(state["prompts"][number])
            return {}

        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return BareGraph(compiled=graph.compile(), calls=calls)


def fresh_questions(n: int) -> list[Question]:
    """Distinct sample questions with their contexts, so that no cache answers any of them."""
    known = load_questions("sample").questions
    drawn = [known[number % len(known)] for number in range(n)]
    return [
        replace(question, id=f"speed-{number}", text=f"{question.text} ({number})")
        for number, question in enumerate(drawn)
    ]
