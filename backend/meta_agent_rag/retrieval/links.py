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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..text.names import content_words, plain, proper_names, spaced, unqualified
from .corpus.catalogue import Catalogue
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

    `vector` is the query's. `score` is the sum above, in 0..6, and every candidate has its cosine, which comes from the
    catalogue, faster than a second search. A passage that the lexical side did not return is beyond its pool and has no
    lexical score. `via` is the passage whose mention led to a result, if the question itself does not name it.
    """
    around = _neighbourhood(query, found, catalogue)
    known = {one.passage.id for one in found}
    targets = dict.fromkeys([*sorted(around.anchors), *(link.target for link in around.links)])
    new = catalogue.passages([id_ for id_ in targets if id_ not in known])
    candidates = [*found, *(Found(passage=one, score=0.0) for one in new.values())]
    lacking = catalogue.vectors([one.passage.id for one in candidates if one.dense is None])
    cosines = {id_: round(float(row @ vector), 5) for id_, row in lacking.items()}
    complete = [
        Found(passage=one.passage, score=0.0, dense=cosines.get(one.passage.id, one.dense), lexical=one.lexical)
        for one in candidates
    ]
    return ranked(query, complete, around)


def _neighbourhood(query: str, found: Sequence[Found], catalogue: Catalogue) -> Neighbourhood:
    """Follow the names in the question, then those in its anchors and in the best passages found."""
    (asked,) = catalogue.mentioned([query])
    named = catalogue.named(asked, most=MOST_BEARERS)
    anchors = dict.fromkeys(one.passage_id for ones in named.values() for one in ones)
    known = {one.passage.id: one.passage for one in found}
    known.update(catalogue.passages([id_ for id_ in anchors if id_ not in known]))
    seeds = list(dict.fromkeys([*(id_ for id_ in anchors if id_ in known), *(one.passage.id for one in found[:SEEDS])]))
    mentions = dict(zip(seeds, catalogue.mentioned([known[id_].text for id_ in seeds]), strict=True))
    every = list(dict.fromkeys(name for names in mentions.values() for name in names))
    named = catalogue.named(every, most=MOST_BEARERS)
    links: dict[Link, None] = {}
    targets: set[str] = set()
    for id_, name in ((id_, name) for id_, names in mentions.items() for name in names if name in named):
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
    names = [[name for name in proper_names(f"{one.title}. {one.text}") if f" {name} " not in asked] for one in seeds]
    sharing = catalogue.mentioning(list(dict.fromkeys(name for own in names for name in own)), most=MOST_BEARERS + 1)
    links: list[Link] = []
    for seed, own in zip(seeds, names, strict=True):
        for name in own:
            others = [one for one in sharing.get(name, ()) if one.doc_id != seed.doc_id]
            bearers = len({seed.doc_id, *(one.doc_id for one in others)})
            links += [Link(seed.id, one.passage_id, bearers) for one in others]
    return links


def ranked(query: str, candidates: Sequence[Found], around: Neighbourhood) -> list[Found]:
    """The candidates by their sums; ties are broken by passage id."""
    best = max((one.lexical or 0.0 for one in candidates), default=0.0) or 1.0
    coverage = _coverage(query, {**around.passages, **{one.passage.id: one.passage for one in candidates}})
    sources: dict[str, list[Link]] = {}
    for link in around.links:
        sources.setdefault(link.target, []).append(link)
    titles = [(one, bare) for one in around.passages.values() if (bare := unqualified(one.title))]
    scored = []
    for one in candidates:
        id_, text = one.passage.id, one.passage.text
        link_score, via = 0.0, None
        for link in sources.get(id_, ()):
            rise = ((link.source in around.anchors) + coverage(link.source, id_)) / link.bearers
            if via is None or rise > link_score:
                link_score, via = rise, link.source
        named = [
            other.id
            for other, title in titles
            if title in text and other.doc_id != one.passage.doc_id and plain(title) in plain(text)
        ]
        back = max((coverage(other, id_) for other in named), default=0.0)
        if id_ in around.anchors:
            via = None
        direct = max(0.0, one.dense or 0.0) + (one.lexical or 0.0) / best + (id_ in around.anchors)
        score = direct + link_score + back
        scored.append(Found(passage=one.passage, score=score, dense=one.dense, lexical=one.lexical, via=via))
    return sorted(scored, key=lambda one: (-one.score, one.passage.id))


def _coverage(query: str, passages: Mapping[str, Passage]) -> Callable[[str, str], float]:
    """The share of the question's content words that two passages, given by their ids, cover together.

    Function words count if there are no others.
    """
    bits = [(f" {word} ", 1 << place) for place, word in enumerate(content_words(query))]

    @cache
    def covered(id_: str) -> int:
        text = spaced(passages[id_].searchable())
        return sum(bit for word, bit in bits if word in text)

    return lambda left, right: (covered(left) | covered(right)).bit_count() / max(1, len(bits))
