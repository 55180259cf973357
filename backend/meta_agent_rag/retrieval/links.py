"""Links across hops, without a model call: a passage often names the one that completes it.

A multi-hop question names some things by title (its *anchors*) and refers to others that only the
evidence names. Besides the passages found by the two searches, the candidates are therefore the anchors,
all passages that the anchors and the best passages found mention by title, and those that share a rare name, not in
the question, with the very best. Every candidate then gets a sum whose parts all lie
in 0..1 and have equal weight (no weight was fitted):

    cosine + BM25 / best BM25 + anchor + link + back link

`anchor` is 1 if the question names the passage. `link` is, for the best passage that mentions this
one or shares a name with it, (1 if that is an anchor) + the share of the question's words that the pair
covers, divided by the number of documents that have the name as a title or in their texts. `back
link` is that share for the best passage that this one mentions. A name shared by many documents says nothing
and is skipped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..text.names import content_words, plain, proper_names, spaced, unqualified
from .corpus.catalogue import Catalogue, NamedPassage
from .passage import Found, Passage
from .vectors import FloatVector

SEEDS = 10
"""The number of best passages whose mentions are followed, besides the anchors."""

SHARING = 5
"""The number of best passages whose names are looked up in other texts."""

MOST_BEARERS = 5
"""The most documents with one name; a more frequent name is skipped."""

MOST_LINKED = 200
"""The most candidates that links add for one question."""


class Link(NamedTuple):
    """One passage mentions another, or both share a name: `bearers` is the number of documents with the name."""

    source: str
    target: str
    bearers: int


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """The targets of links from a question and from the passages found for it."""

    anchors: frozenset[str]
    links: tuple[Link, ...]
    passages: Mapping[str, Passage]


def expand_links(query: str, vector: FloatVector, found: Sequence[Found], catalogue: Catalogue) -> list[Found]:
    """The candidates for `query`, best first: those `found` and those reached by links.

    `vector` is the query's. `score` is the sum above, in 0..6, and every candidate has its cosine. `via` is
    the passage whose mention led to a result, if the question itself does not name it.
    """
    around = neighbourhood(query, found, catalogue)
    return ranked(query, _completed(vector, found, around, catalogue), around)


def neighbourhood(query: str, found: Sequence[Found], catalogue: Catalogue) -> Neighbourhood:
    """Follow the names in the question, then those in its anchors and in the best passages found."""
    (asked,) = catalogue.mentioned([query])
    named = _few(catalogue.named(asked))
    anchors = dict.fromkeys(one.passage_id for ones in named.values() for one in ones)
    known = {one.passage.id: one.passage for one in found}
    known.update(catalogue.passages([id_ for id_ in anchors if id_ not in known]))
    seeds = list(dict.fromkeys([*(id_ for id_ in anchors if id_ in known), *(one.passage.id for one in found[:SEEDS])]))
    mentions = dict(zip(seeds, catalogue.mentioned([known[id_].text for id_ in seeds]), strict=True))
    named = _few(catalogue.named(list(dict.fromkeys(name for found_ in mentions.values() for name in found_))))
    links: dict[Link, None] = {}
    targets: set[str] = set()
    for id_, mentioned in mentions.items():
        for name in (name for name in mentioned if name in named):
            bearers = len({one.doc_id for one in named[name]})
            for one in named[name]:
                elsewhere = one.doc_id != known[id_].doc_id  # a document's mention of itself is not a link
                if elsewhere and (len(targets) < MOST_LINKED or one.passage_id in targets):
                    targets.add(one.passage_id)
                    links[Link(id_, one.passage_id, bearers)] = None
    links |= dict.fromkeys(_shared(query, [one.passage for one in found[:SHARING]], catalogue))
    return Neighbourhood(anchors=frozenset(anchors), links=tuple(links), passages={id_: known[id_] for id_ in seeds})


def _shared(query: str, seeds: Sequence[Passage], catalogue: Catalogue) -> list[Link]:
    """Links from the seeds to passages that share with them a rare name that is not in the question."""
    asked = plain(query)
    names = {
        seed.id: [name for name in proper_names(f"{seed.title}. {seed.text}") if f" {name} " not in asked]
        for seed in seeds
    }
    every = list(dict.fromkeys(name for own in names.values() for name in own))
    sharing = catalogue.mentioning(every, most=MOST_BEARERS + 1)
    links: list[Link] = []
    for seed in seeds:
        for name in names[seed.id]:
            others = [one for one in sharing.get(name, ()) if one.doc_id != seed.doc_id]
            bearers = len({seed.doc_id, *(one.doc_id for one in others)})
            links += [Link(seed.id, one.passage_id, bearers) for one in others]
    return links


def ranked(query: str, candidates: Sequence[Found], around: Neighbourhood) -> list[Found]:
    """The candidates by their sums; ties are broken by passage id."""
    best = max((one.lexical or 0.0 for one in candidates), default=0.0) or 1.0
    coverage = _Coverage(query, {**around.passages, **{one.passage.id: one.passage for one in candidates}})
    sources: dict[str, list[Link]] = {}
    for link in around.links:
        sources.setdefault(link.target, []).append(link)
    titles = [(one, bare) for one in around.passages.values() if (bare := unqualified(one.title))]
    scored = []
    for one in candidates:
        id_, text = one.passage.id, one.passage.text
        link_score, via = 0.0, None
        for link in sources.get(id_, ()):
            rise = ((link.source in around.anchors) + coverage.of(link.source, id_)) / link.bearers
            if via is None or rise > link_score:
                link_score, via = rise, link.source
        named = [
            other.id
            for other, title in titles
            if title in text and other.doc_id != one.passage.doc_id and plain(title) in plain(text)
        ]
        back = max((coverage.of(other, id_) for other in named), default=0.0)
        if id_ in around.anchors:
            via = None
        direct = max(0.0, one.dense or 0.0) + (one.lexical or 0.0) / best + (id_ in around.anchors)
        score = direct + link_score + back
        scored.append(Found(passage=one.passage, score=score, dense=one.dense, lexical=one.lexical, via=via))
    return sorted(scored, key=lambda one: (-one.score, one.passage.id))


class _Coverage:
    """The content words of the question that a passage contains; function words count if there are no others."""

    def __init__(self, query: str, passages: Mapping[str, Passage]) -> None:
        self._bits = [(f" {word} ", 1 << place) for place, word in enumerate(content_words(query))]
        self._passages = passages
        self._covered: dict[str, int] = {}

    def of(self, left: str, right: str) -> float:
        """The share of the question's words that the two passages cover together."""
        return (self._within(left) | self._within(right)).bit_count() / max(1, len(self._bits))

    def _within(self, id_: str) -> int:
        if id_ not in self._covered:
            passage = self._passages[id_]
            text = spaced(passage.searchable())
            self._covered[id_] = sum(bit for word, bit in self._bits if word in text)
        return self._covered[id_]


def _completed(vector: FloatVector, found: Sequence[Found], around: Neighbourhood, catalogue: Catalogue) -> list[Found]:
    """Everything found and everything reached by links, with the cosine of each.

    Cosines come from the catalogue, which is faster than a second search. A passage that the lexical side did not
    return is beyond its pool and has no lexical score.
    """
    known = {one.passage.id: one for one in found}
    targets = dict.fromkeys([*sorted(around.anchors), *(link.target for link in around.links)])
    new = [id_ for id_ in targets if id_ not in known]
    candidates = [*found, *(Found(passage=one, score=0.0) for one in catalogue.passages(new).values())]
    lacking = [one.passage.id for one in candidates if one.dense is None]
    cosines = {id_: round(float(row @ vector), 5) for id_, row in catalogue.vectors(lacking).items()}
    return [
        Found(passage=one.passage, score=0.0, dense=cosines.get(one.passage.id, one.dense), lexical=one.lexical)
        for one in candidates
    ]


def _few(named: Mapping[str, list[NamedPassage]]) -> dict[str, list[NamedPassage]]:
    """Names that only few documents have."""
    return {name: ones for name, ones in named.items() if len({one.doc_id for one in ones}) <= MOST_BEARERS}
