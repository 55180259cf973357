"""Retrieval over a graph of names and passages, by personalised PageRank from the names in the question.

Every passage found is linked to the names in its title and text. Activation starts at the names that the
question mentions (more for rarer names), and a little at the passages that the question itself found; it spreads
over the graph, and the accumulated activation ranks the passages. `chain_of_thought` then reads the best.

Departures: capitalised names instead of an LLM's triples, so that indexing calls no model; the graph is not
built over the whole corpus but grows from the question: up to `EXPANSIONS` times, the most active name not yet
used is searched for. Damping, the weight of passages and the specificity of names are those of
HippoRAG and HippoRAG 2 (arXiv:2502.14802).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import pack
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.text.names import mentioned, name_keys, proper_names

from .chain_of_thought import chain
from .inquiry import Inquiry
from .method import Method, MethodTask

EXPANSIONS = 4
DAMPING = 0.5
PASSAGE_WEIGHT = 0.05
_STEPS = 30
"""Steps of the power iteration: with a damping of 0.5 the remainder is below 1e-9."""


@dataclass(frozen=True, kw_only=True)
class Activation:
    """The activation of each passage, by id, and of each name; each group sums to at most 1."""

    passages: Mapping[str, float]
    names: Mapping[str, float]


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Search for the question, then for the most active names; read the passages with the most activation."""
    inquiry = Inquiry.of(engine, task)
    first = await inquiry.search(task.question)
    searched: set[str] = set()
    for _ in range(EXPANSIONS):
        active = spread(task.question, inquiry.found, first).names
        name = max((one for one in active if one not in searched), key=lambda one: (active[one], one), default=None)
        if name is None:
            break
        searched.add(name)
        await inquiry.search(name)
    gathered = spread(task.question, inquiry.found, first).passages
    best = sorted(inquiry.found, key=lambda one: -gathered[one.passage.id])[: engine.settings.retrieval_top_k]
    packed = pack(best, engine.model.evidence_tokens())
    reply = await chain(inquiry, packed)
    return inquiry.answer(reply.text, reply.short_answer, packed)


def spread(question: str, found: Sequence[Found], first: Sequence[Found]) -> Activation:
    """Personalised PageRank over passages and the names in them, from the names in the question.

    `first` are the passages that the question itself found, best first. A name that the question does not mention
    gets activation only through passages; without any names, passages keep the order in which they were found.
    """
    names = {one.passage.id: _names(one) for one in found}
    bearers: dict[str, list[str]] = defaultdict(list)
    for id_, own in names.items():
        for name in own:
            bearers[name].append(id_)
    (asked,) = mentioned([question], lambda keys: bearers.keys() & keys)
    start = {name: 1.0 / len(bearers[name]) for name in asked}
    places = {one.passage.id: PASSAGE_WEIGHT / place for place, one in enumerate(first, start=1)}
    total = sum(start.values()) + sum(places.values()) or 1.0
    at_names, at_passages = dict.fromkeys(bearers, 0.0), dict.fromkeys(names, 0.0)
    for _ in range(_STEPS):
        to_names = _shared(at_passages, names)
        to_passages = _shared(at_names, bearers)
        at_names = _next(bearers, start, to_names, total)
        at_passages = _next(names, places, to_passages, total)
    return Activation(passages=at_passages, names=at_names)


def _shared(holders: Mapping[str, float], neighbours: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """What flows to each neighbour: every node's activation, in equal parts."""
    flows: dict[str, float] = defaultdict(float)
    for holder, activation in holders.items():
        ends = tuple(neighbours[holder])
        for end in ends:
            flows[end] += activation / len(ends)
    return flows


def _next(
    nodes: Iterable[str], start: Mapping[str, float], flows: Mapping[str, float], total: float
) -> dict[str, float]:
    return {node: (1 - DAMPING) * start.get(node, 0.0) / total + DAMPING * flows.get(node, 0.0) for node in nodes}


def _names(found: Found) -> tuple[str, ...]:
    title = (key.key for key in name_keys(found.passage.title))
    return tuple(dict.fromkeys((*title, *proper_names(found.passage.text))))


METHOD = Method(
    name="hipporag",
    citation="Gutiérrez et al.: HippoRAG: Neurobiologically Inspired Long-Term Memory for Large Language Models, "
    "NeurIPS 2024, arXiv:2405.14831",
    about="personalised PageRank over passages and the names in them, from the names in the question, after searches "
    "for the 4 most active names; then `chain_of_thought` over the best",
    departures="capitalised names instead of an LLM's triples; the graph grows from the question instead of covering "
    "the corpus",
    answer=answer,
)
