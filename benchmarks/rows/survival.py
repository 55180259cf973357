"""Where evidence is lost: what is still present after each stage of a round, for the paragraphs and for the answer.

- `retrieved`: among the evidence of the round.
- `packed`: in the prompt as sent. Of a shortened paragraph, all supporting sentences must have been kept; if the
  data set labels whole paragraphs, any of its text.
- `quoted`: packed, and quoted verbatim by the draft.
- `used`: packed, and cited as `[n]` in the draft's answer or quoted verbatim; of the answer: in the short answer.
"""

import re
from collections.abc import Mapping, Sequence

from meta_agent_rag.agent.prompting import pack
from meta_agent_rag.agent.state import Packing, Round
from meta_agent_rag.datasets import Question
from meta_agent_rag.datasets.dataset import Paragraph
from meta_agent_rag.grounding.quotes import is_verbatim
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.text.normalise import as_quoted, normalised

STAGES = ("retrieved", "packed", "quoted", "used")
_CITED = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_VERDICTS = frozenset({"yes", "no", "noanswer"})
_ROUNDING = 3
"""Tokens by which a prompt's estimate can differ from its budget because of white space between sentences."""


def evidence_recall(question: Question, round_: Round, evidence: Sequence[Passage]) -> dict[str, float] | None:
    """Share of the supporting paragraphs still present after each stage, 0..1.

    Paragraphs are identified by title and text, regardless of their ids in a corpus. `None` for a question without
    supporting paragraphs.
    """
    wanted = {(one.title, one.text): one for one in question.paragraphs if one.is_supporting}
    if not wanted:
        return None
    by_id = {passage.id: passage for passage in evidence}
    shown = shown_texts(round_.packing, by_id)
    cited = cited_ids(round_)
    kept: dict[str, set[tuple[str, str]]] = {stage: set() for stage in STAGES}
    for id_ in dict.fromkeys((*round_.evidence_ids, *shown)):
        passage = by_id.get(id_)
        gold = None if passage is None else wanted.get((passage.title, passage.text))
        if gold is None:
            continue
        identity = (gold.title, gold.text)
        is_packed = id_ in shown and _holds(gold, shown[id_])
        is_quoted = is_packed and any(is_verbatim(quote, [shown[id_]]) for quote in round_.draft.quotes)
        reached = (id_ in round_.evidence_ids, is_packed, is_quoted, is_quoted or (is_packed and id_ in cited))
        for stage, there in zip(STAGES, reached, strict=True):
            if there:
                kept[stage].add(identity)
    return {stage: round(len(found) / len(wanted), 4) for stage, found in kept.items()}


def answer_recall(question: Question, round_: Round, evidence: Sequence[Passage]) -> dict[str, float] | None:
    """Presence of a gold answer after each stage, 1.0 or 0.0: in texts, in verbatim quotes, in the short answer.

    Matched as consecutive whole words, after normalisation. `None` for answers that texts do not contain as such
    (yes, no).
    """
    golds = [words for gold in question.golds if (words := normalised(gold))]
    if not golds or normalised(question.answer) in _VERDICTS:
        return None
    by_id = {passage.id: passage for passage in evidence}
    shown = shown_texts(round_.packing, by_id)
    retrieved = [by_id[id_].searchable() for id_ in round_.evidence_ids if id_ in by_id]
    quotes = [quote for quote in round_.draft.quotes if is_verbatim(quote, shown.values())]
    stages = (retrieved, list(shown.values()), quotes, [round_.draft.short_answer])
    found = {}
    for stage, texts in zip(STAGES, stages, strict=True):
        held = [f" {normalised(text)} " for text in texts]
        found[stage] = float(any(f" {gold} " in text for gold in golds for text in held))
    return found


def cited_ids(round_: Round) -> frozenset[str]:
    """Ids of the passages that the draft's answer cites: `[n]` counts the packed ones from 1."""
    numbers = [int(number) for group in _CITED.findall(round_.draft.answer) for number in re.findall(r"\d+", group)]
    packed = round_.packing.packed_ids
    return frozenset(packed[number - 1] for number in numbers if 1 <= number <= len(packed))


def shown_texts(packing: Packing, by_id: Mapping[str, Passage]) -> dict[str, str]:
    """The packed passages by id, each with its title and its text as shown in the prompt.

    A record lists the shortened passages and the total number of tokens: packing the same
    passages again into that number of tokens cuts them at the same sentences. If a prompt was packed
    in another way, a shortened passage has what fits.
    """
    known = [by_id[id_] for id_ in packing.packed_ids if id_ in by_id]
    whole = {passage.id: passage.searchable() for passage in known}
    if not packing.shortened_ids:
        return whole
    found = [Found(passage=passage, score=0.0) for passage in known]
    tries = (pack(found, packing.tokens + more) for more in range(_ROUNDING))
    again = next((one for one in tries if one.packing.tokens == packing.tokens), None) or pack(found, packing.tokens)
    held = dict(zip(again.packing.packed_ids, again.texts, strict=True))
    cut = set(packing.shortened_ids)
    return {id_: held.get(id_, by_id[id_].title) if id_ in cut else text for id_, text in whole.items()}


def _holds(paragraph: Paragraph, shown: str) -> bool:
    sentences = [
        paragraph.sentences[index]
        for index in sorted(paragraph.supporting_sentences)
        if index < len(paragraph.sentences)
    ]
    text = as_quoted(shown)
    if sentences:
        return all(as_quoted(sentence) in text for sentence in sentences)
    return len(text) > len(as_quoted(paragraph.title))
