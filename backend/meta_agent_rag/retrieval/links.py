"""Links across hops, without a model call: a passage often names the one that completes it.

A question of several hops names some things by title (its *anchors*) and means others that only the
evidence names. So, beside the passages that the two searches found, the candidates are the anchors and
whatever the anchors and the best passages found mention by title. Every candidate then gets one sum,
all of whose parts lie in 0..1 and count alike (no weight was fitted):

    cosine + BM25 / best BM25 + anchor + link + back link

`anchor` is 1 where the question names the passage. `link` is, for the best passage that mentions this
one, (1 if that is an anchor) + the share of the question's words that the pair of them covers, over
the number of documents that bear the name. `back link` is that share for the best passage that this
one mentions. A name with many bearers says nothing and is passed over.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .catalogue import Named
from .corpus import Corpus
from .names import mentioned, plain, possible_names, unqualified, words
from .passage import Found, Passage
from .stores.words import stop_words
from .vectors import FloatVector

SEEDS = 10
"""The best passages found whose mentions are followed, beside the anchors."""

MOST_BEARERS = 5
"""Documents of one name; a name with more is passed over."""

MOST_PASSAGES = 20
"""Passages of one document that a mention of it brings in, its first ones."""

MOST_LINKED = 200
"""Candidates that links bring in for one question."""


class Link(NamedTuple):
    """One passage mentions another: `bearers` documents have the name that it uses."""

    source: str
    target: str
    bearers: int


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """What links lead to from a question and what was found for it."""

    anchors: frozenset[str]
    links: tuple[Link, ...]
    passages: Mapping[str, Passage]


async def linked(query: str, vector: FloatVector, found: Sequence[Found], corpus: Corpus) -> list[Found]:
    """The candidates for `query`, best first: those `found` and those that links lead to.

    `vector` is the query's. `via` names the passage whose mention of it led to a
    result that the question itself does not name. `score` is the
    sum above, in 0..6; `dense` and `lexical` are there for every candidate.
    """
    around = await asyncio.to_thread(neighbourhood, query, found, corpus)
    candidates = await _completed(query, vector, found, around, corpus)
    return await asyncio.to_thread(ranked, query, candidates, around)


def neighbourhood(query: str, found: Sequence[Found], corpus: Corpus) -> Neighbourhood:
    """Follow the names in the question, then those in its anchors and in the best passages found."""
    catalogue = corpus.catalogue
    named = _few(catalogue.named(list(possible_names(query))))
    anchors = dict.fromkeys(one.passage_id for name in mentioned(query, named) for one in _first(named[name]))
    known = {one.passage.id: one.passage for one in found}
    known.update(catalogue.passages([id_ for id_ in anchors if id_ not in known]))
    seeds = list(dict.fromkeys([*(id_ for id_ in anchors if id_ in known), *(one.passage.id for one in found[:SEEDS])]))
    texts = {id_: known[id_].text for id_ in seeds}
    named = _few(catalogue.named(list(dict.fromkeys(name for text in texts.values() for name in possible_names(text)))))
    links: dict[Link, None] = {}
    targets: set[str] = set()
    for id_, text in texts.items():
        for name in mentioned(text, named):
            bearers = len({one.doc_id for one in named[name]})
            for one in _first(named[name]):
                if one.passage_id != id_ and (len(targets) < MOST_LINKED or one.passage_id in targets):
                    targets.add(one.passage_id)
                    links[Link(id_, one.passage_id, bearers)] = None
    return Neighbourhood(anchors=frozenset(anchors), links=tuple(links), passages={id_: known[id_] for id_ in seeds})


def ranked(query: str, candidates: Sequence[Found], around: Neighbourhood) -> list[Found]:
    """The candidates by their sums; ties by passage id."""
    best = max((one.lexical or 0.0 for one in candidates), default=0.0) or 1.0
    coverage = _Coverage(query, {**around.passages, **{one.passage.id: one.passage for one in candidates}})
    sources: dict[str, list[Link]] = {}
    for link in around.links:
        sources.setdefault(link.target, []).append(link)
    mentions = _Mentions(around.passages.values())
    scored = []
    for one in candidates:
        id_ = one.passage.id
        link_score, via = 0.0, None
        for link in sources.get(id_, ()):
            rise = ((link.source in around.anchors) + coverage.of(link.source, id_)) / link.bearers
            if via is None or rise > link_score:
                link_score, via = rise, link.source
        back = max((coverage.of(other, id_) for other in mentions.within(one.passage)), default=0.0)
        if id_ in around.anchors:
            via = None
        direct = max(0.0, one.dense or 0.0) + (one.lexical or 0.0) / best + (id_ in around.anchors)
        score = direct + link_score + back
        scored.append(Found(passage=one.passage, score=score, dense=one.dense, lexical=one.lexical, via=via))
    return sorted(scored, key=lambda one: (-one.score, one.passage.id))


class _Coverage:
    """Which of the question's content words each passage has; function words count where there are no others."""

    def __init__(self, query: str, passages: Mapping[str, Passage]) -> None:
        every = dict.fromkeys(words(query))
        content = [word for word in every if word not in stop_words()] or list(every)
        self._bits = [(f" {word} ", 1 << place) for place, word in enumerate(content)]
        self._covered = {id_: self._within(passage) for id_, passage in passages.items()}

    def of(self, left: str, right: str) -> float:
        """The share of the question's words that the two passages cover together."""
        return (self._covered[left] | self._covered[right]).bit_count() / max(1, len(self._bits))

    def _within(self, passage: Passage) -> int:
        text = plain(passage.title) + plain(passage.text)
        return sum(bit for word, bit in self._bits if word in text)


class _Mentions:
    """Which of some passages are mentioned, by their titles, in another."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        names = ((passage.id, plain(unqualified(passage.title))) for passage in passages)
        self._names = [(id_, name) for id_, name in names if name.strip()]

    def within(self, passage: Passage) -> list[str]:
        text = plain(passage.text)
        return [id_ for id_, name in self._names if name in text and id_ != passage.id]


async def _completed(
    query: str, vector: FloatVector, found: Sequence[Found], around: Neighbourhood, corpus: Corpus
) -> list[Found]:
    """Everything found and everything that links lead to, with the scores of both sides, in any order."""
    known = {one.passage.id: one for one in found}
    new = [id_ for id_ in (*around.anchors, *(link.target for link in around.links)) if id_ not in known]
    no_dense = sorted({*new, *(id_ for id_, one in known.items() if one.dense is None)})
    no_lexical = sorted({*new, *(id_ for id_, one in known.items() if one.lexical is None)})
    (passages, cosines), lexical = await asyncio.gather(
        asyncio.to_thread(_cosines, corpus, vector, no_dense),
        corpus.lexical.search(query, len(no_lexical), among=no_lexical),
    )
    scores = {one.passage.id: one.lexical for one in lexical}
    everything = {**{id_: one.passage for id_, one in known.items()}, **passages}
    return [
        Found(
            passage=passage,
            score=0.0,
            dense=cosines.get(id_, known[id_].dense if id_ in known else None),
            lexical=scores.get(id_, known[id_].lexical if id_ in known else None),
        )
        for id_, passage in everything.items()
    ]


def _cosines(corpus: Corpus, vector: FloatVector, ids: Sequence[str]) -> tuple[dict[str, Passage], dict[str, float]]:
    """These passages and their cosines, from the catalogue: quicker than a second search."""
    vectors = corpus.catalogue.vectors(ids)
    return corpus.catalogue.passages(ids), {id_: round(float(row @ vector), 5) for id_, row in vectors.items()}


def _few(named: Mapping[str, list[Named]]) -> dict[str, list[Named]]:
    """Names that few documents bear."""
    return {name: ones for name, ones in named.items() if len({one.doc_id for one in ones}) <= MOST_BEARERS}


def _first(ones: Sequence[Named]) -> list[Named]:
    """The first passages of each document."""
    taken: Counter[str] = Counter()
    first = []
    for one in ones:
        if taken[one.doc_id] < MOST_PASSAGES:
            first.append(one)
        taken[one.doc_id] += 1
    return first
