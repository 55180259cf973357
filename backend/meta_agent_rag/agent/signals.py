"""The monitor's measurements on a draft: its agreement with the second answer, its quotes, its writer's estimates."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from ..grounding.abstention import is_abstention
from ..grounding.answer_kind import kind_asked, of_kind
from ..grounding.quotes import is_verbatim, verbatim_share
from ..grounding.short_answer import same_answer
from ..llm.messages import Reply, Sampling
from ..text.names import content_words, spaced
from ..text.normalise import normalised, overlap
from .context import Context
from .prompting import Packed
from .state import VERDICTS, Draft, SecondAnswer, Signals

_SHORT_ANSWER = '"short_answer"'


async def measure(context: Context, question: str, draft: Draft, second: SecondAnswer, packed: Packed) -> Signals:
    """The signals of a draft and a second answer; a second answer of the wrong kind neither agrees nor disagrees."""
    comparable = second.error is None and not is_abstention(second.short_answer) and not draft.abstained
    agreement = None
    if comparable and right_kind(context, question, second.short_answer) is not False:
        agreement = same_answer(draft.short_answer, second.short_answer)
    similarity = 1.0 if comparable and normalised(draft.short_answer) == normalised(second.short_answer) else None
    if comparable and similarity is None:  # equal texts have equal vectors
        vectors = await context.monitor_encoder.passages([draft.short_answer, second.short_answer])
        similarity = float(vectors[0] @ vectors[1])
    return replace(
        measure_alone(context, question, draft, packed),
        similarity=similarity,
        agreement=agreement,
        overlap=overlap(draft.short_answer, second.short_answer) if comparable else None,
        reference_logprob=second.logprob if second.error is None else None,
    )


def measure_alone(context: Context, question: str, draft: Draft, packed: Packed) -> Signals:
    """The signals of a draft and its evidence, without a second answer."""
    held = [quote for quote in draft.quotes if is_verbatim(quote, packed.texts)]
    quoted, short = None, normalised(draft.short_answer)
    if draft.quotes and not draft.abstained and short not in VERDICTS:
        quoted = any(f" {short} " in f" {normalised(quote)} " for quote in held)
    return Signals(
        similarity=None,
        agreement=None,
        verbatim=verbatim_share(draft.quotes, packed.texts),
        coverage=_coverage(question, held, packed.texts) if draft.quotes else None,
        quoted=quoted,
        of_kind=None if draft.abstained else right_kind(context, question, draft.short_answer),
        abstained=draft.abstained,
        evidence_passages=len(packed.texts),
        confidence=draft.confidence,
        logprob=draft.logprob,
    )


def right_kind(context: Context, question: str, short_answer: str) -> bool | None:
    """Whether it is of the kind that the question asks for; `None` if the question's wording does not say.

    In grounded runs a yes or no may be given in other words, "only on weekdays", and any answer may be that the
    documents call it unknown.
    """
    if context.grounded and (kind_asked(question) == "verdict" or is_abstention(short_answer)):
        return None
    return of_kind(question, short_answer)


def _coverage(question: str, quotes: Sequence[str], texts: Sequence[str]) -> float:
    """The share (0..1) of the question's content words that the quotes and the titles of their passages contain.

    Each of `texts` begins with its title on a separate line. If all words are function words, all of them count.
    """
    titles = [text.partition("\n")[0] for text in texts if any(is_verbatim(quote, [text]) for quote in quotes)]
    held = spaced(" ".join((*quotes, *titles)))
    content = content_words(question)
    return round(sum(f" {word} " in held for word in content) / len(content), 4) if content else 0.0


def with_logprobs(context: Context, stage: str) -> Sampling:
    """Request the tokens' log-probabilities if the endpoint supports them."""
    return Sampling(logprobs=context.model.owner.gives_logprobs(stage))


def short_answer_logprob(reply: Reply, short_answer: str) -> float | None:
    """Mean log-probability of the tokens that spell the reply's short answer; of all tokens if these are not found.

    `None` if the endpoint reported none.
    """
    if not reply.tokens:
        return None
    spelt = "".join(token for token, _ in reply.tokens)
    written = json.dumps(short_answer, ensure_ascii=False)[1:-1]
    start = spelt.find(written, max(spelt.rfind(_SHORT_ANSWER), 0) + len(_SHORT_ANSWER))
    of_answer: list[float] = []
    place = 0
    for token, logprob in reply.tokens:
        if start >= 0 and place < start + len(written) and place + len(token) > start:
            of_answer.append(logprob)
        place += len(token)
    measured = [max(one, _LEAST) for one in of_answer or [logprob for _, logprob in reply.tokens]]
    return round(math.fsum(measured) / len(measured), 4)


def mean_logprob(reply: Reply) -> float | None:
    """Mean log-probability of a reply's tokens (<= 0); `None` if the endpoint reported none."""
    if not reply.tokens:
        return None
    return round(math.fsum(max(logprob, _LEAST) for _, logprob in reply.tokens) / len(reply.tokens), 4)


_LEAST = -20.0
"""Lower bound for log-probabilities: for impossible tokens, endpoints report anything down to minus infinity."""
