"""The same graph under the paper's protocol: cosine monitor at 0.4, two rounds, the last draft."""

from dataclasses import replace

from meta_agent_rag.agent.engine import Answer, Engine

from . import metarag
from .method import Method, Task

PROTOCOL = {
    "monitor_policy": "paper",
    "monitor_similarity_threshold": 0.4,
    "max_metacognitive_rounds": 2,
    "selection": "last",
}
"""Section 4.1 and Table 2 of the paper: k = 0.4, two rounds; the answer is that of the last round."""


async def answer(engine: Engine, task: Task) -> Answer:
    """Run the graph with the paper's settings in place of the run's."""
    return await metarag.answer(replace(engine, settings=engine.settings.model_copy(update=PROTOCOL)), task)


METHOD = Method(
    name="metarag_paper",
    citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
    "arXiv:2402.11626",
    answer=answer,
    quotes=True,
    loop=True,
)
