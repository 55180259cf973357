"""The graph for LangGraph's own server and Studio: `langgraph.json` names `served_graph`.

A run there supplies a question and a few plain values; the rest of its `Context` is opened by the first node
according to the settings, and closed with the run. Reading the graph or its schemas opens nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from typing_extensions import TypedDict  # needed for the schemas that Studio shows

from ..errors import InputError
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.opening import open_retriever
from ..settings import Settings
from .context import Context
from .deficits import DeficitRegistry, discover_deficits
from .engine import open_engine
from .graph import GraphInterface, Node, build_graph
from .state import State, Update

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """A run's options: the corpus to search, and whether answers must come from it alone."""

    corpus: str = SAMPLE
    grounded: bool = True


class QuestionInput(TypedDict):
    """A run's input."""

    question: str


@asynccontextmanager
async def served_graph(config: RunnableConfig) -> AsyncIterator["CompiledStateGraph[State, Context]"]:
    """The graph for one run; `config` is passed by the server and not used."""
    settings = Settings.load()
    async with AsyncExitStack() as stack:
        run = _Run(settings=settings, deficits=discover_deficits(settings.deficits_dir), stack=stack)
        yield build_graph(
            run.deficits,
            interface=GraphInterface(context_schema=RunOptions, input_schema=QuestionInput, wrap=run.wrapped),
        )


@dataclass(kw_only=True)
class _Run:
    settings: Settings
    deficits: DeficitRegistry
    stack: AsyncExitStack
    context: Context | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    def wrapped(self, node: Node) -> Node:
        async def supplied(state: State, runtime: Runtime[Context]) -> Update:
            if not state.get("question", "").strip():
                raise InputError("The question is empty; write one.")
            said: object = runtime.context
            context = await self.opened(said if isinstance(said, RunOptions) else RunOptions())
            return await node(state, runtime.override(context=context))

        return supplied

    async def opened(self, options: RunOptions) -> Context:
        async with self.opening:
            if self.context is None:
                engine = await self.stack.enter_async_context(open_engine(self.settings))
                self.context = Context(
                    settings=engine.settings,
                    model=engine.model.session(method="langgraph"),
                    monitor_encoder=engine.monitor_encoder,
                    deficits=self.deficits,
                    operators=engine.operators,
                    routes=engine.routes,
                    retriever=await self.stack.enter_async_context(open_retriever(self.settings, options.corpus)),
                    grounded=options.grounded,
                )
            return self.context
