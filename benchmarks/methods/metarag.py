"""Our method: the whole graph, with the settings of the run."""

from meta_agent_rag.agent.engine import Answer, Engine

from .method import Method, MethodTask


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Run the compiled graph of `build_graph`."""
    return await engine.run(task)


METHOD = Method(
    name="metarag",
    citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
    "arXiv:2402.11626; as implemented and extended here",
    about="the compiled graph of `build_graph()`, with the run's settings",
    departures="extends it: see [architecture.md](architecture.md)",
    answer=answer,
    quotes=True,
    loop=True,
)
