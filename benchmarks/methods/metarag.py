"""Our method: the whole graph, with the settings of the run, and under the protocol of the paper."""

from meta_agent_rag.agent.engine import Answer, Engine

from .method import Method, MethodTask

PROTOCOL: tuple[tuple[str, object], ...] = (
    ("monitor_policy", "paper"),
    ("monitor_similarity_threshold", 0.4),
    ("max_metacognitive_rounds", 2),
    ("selection", "last"),
    ("supplied_evidence", "whole"),
)
"""Section 4.1 and Table 2 of the paper: k = 0.4, two rounds; the answer is that of the last round."""


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Run the compiled graph of `build_graph`."""
    return await engine.run(task)


METHOD = (
    Method(
        name="metarag",
        citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
        "arXiv:2402.11626; as implemented and extended here",
        about="the compiled graph of `build_graph()`, with the run's settings",
        departures="extends it: see [architecture.md](architecture.md)",
        answer=answer,
        quotes=True,
        loop=True,
    ),
    Method(
        name="metarag_paper",
        citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
        "arXiv:2402.11626",
        about="the same graph with the paper's cosine monitor at 0.4, two rounds, the last draft",
        departures="prompts and model are ours",
        answer=answer,
        quotes=True,
        loop=True,
        pins=PROTOCOL,
    ),
)
