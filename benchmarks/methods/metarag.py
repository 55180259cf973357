"""Ours: the whole graph, with the settings of the run."""

from meta_agent_rag.agent.engine import Answer, Engine

from .method import Method, Task


async def answer(engine: Engine, task: Task) -> Answer:
    """Run the compiled graph of `build_graph`."""
    return await engine.answer(
        task.question,
        evidence=task.evidence,
        retriever=task.retriever,
        question_id=task.id,
        method=task.name,
        oracles=task.oracles,
    )


METHOD = Method(
    name="metarag",
    citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
    "arXiv:2402.11626; as implemented and extended here",
    answer=answer,
    quotes=True,
    loop=True,
)
