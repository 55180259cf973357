"""The same graph under the paper's protocol: cosine monitor at 0.4, two rounds, the last draft."""

from .metarag import answer
from .method import Method

PROTOCOL: tuple[tuple[str, object], ...] = (
    ("monitor_policy", "paper"),
    ("monitor_similarity_threshold", 0.4),
    ("max_metacognitive_rounds", 2),
    ("selection", "last"),
    ("supplied_evidence", "whole"),
)
"""Section 4.1 and Table 2 of the paper: k = 0.4, two rounds; the answer is that of the last round."""


METHOD = Method(
    name="metarag_paper",
    citation="Zhou, Liu, Jin, Nie, Dou: Metacognitive Retrieval-Augmented Large Language Models, WWW 2024, "
    "arXiv:2402.11626",
    about="the same graph with the paper's cosine monitor at 0.4, two rounds, the last draft",
    departures="prompts and model are ours",
    answer=answer,
    quotes=True,
    loop=True,
    pins=PROTOCOL,
)
