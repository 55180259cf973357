"""Post-hook: once the coach has acknowledged the right answer, the learner may celebrate."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....text.normalise import typed
from ..hook import CoachDraft, RuleFinding
from ..phrases import beginning_of, coach_words, consists_of, ending_of, holds, without_adverbs

_CLAUSE = re.compile(r"([^.!?,;:\u2026\n\u2013\u2014()\u3002\uff01\uff1f\u3001\uff0c]+)([.!?\uff1f\u3002]?)")
_DASH = re.compile(r"\s-+\s")
_QUESTION_MARKS = "?\uff1f"
_JAPANESE_QUESTION = "\u304b"
_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class ExitTrigger:
    """Recognises an acknowledgement by the reply's own field, by phrases, or by meaning.

    An explicit rejection overrules them all. A hint is never an acknowledgement: the learner has just given up.
    """

    name: str = "exit_trigger"
    priority: int = 20

    def after(self, draft: CoachDraft) -> RuleFinding:
        """See `PostHook`."""
        if draft.is_hint or rejects(draft.text):
            return RuleFinding()
        return RuleFinding(acknowledged=draft.acknowledges or draft.sounds_right or acknowledges(draft.text))


def rejects(text: str) -> bool:
    """Does the wording of a reply say that the answer was not right?"""
    known = coach_words()
    return any(
        consists_of(clause, known.refusals, known.rejection_fillers)
        or ending_of(clause, known.rejections)
        or (ending_of(clause, known.rights) and holds(clause, known.negations))
        for clause in _clauses(text)
    )


def acknowledges(text: str) -> bool:
    """Does the wording of a reply say that the answer was right?

    >>> acknowledges("That's right. What follows?"), acknowledges("Is that right?"), acknowledges("That is not right.")
    (True, False, False)
    """
    return any(_is_verdict(clause) or _is_verdict(without_adverbs(clause)) for clause in _clauses(text))


def _clauses(text: str) -> Iterator[str]:
    """The plain clauses of a text that are not questions."""
    conjunctions = coach_words().conjunctions
    for match in _CLAUSE.finditer(_DASH.sub(", ", text)):
        if match[2] and match[2] in _QUESTION_MARKS:
            continue
        words = typed(match[1])[:_LONGEST].split()
        begin = 0
        for place, word in enumerate(words):
            if word in conjunctions:
                yield " ".join(words[begin:place])
                begin = place + 1
        yield " ".join(words[begin:])


def _is_verdict(clause: str) -> bool:
    known = coach_words()
    if consists_of(clause, known.acknowledgement, known.praise_fillers):
        return True
    if clause.endswith(_JAPANESE_QUESTION) or holds(clause, known.verdict_vetoes):
        return False
    ending = ending_of(clause, known.verdict_endings)
    speaks_japanese = bool(ending) and not clause[-ending:].isascii()
    return bool(ending) and (speaks_japanese or beginning_of(clause, known.verdict_subjects) > 0)


POST_HOOK = ExitTrigger()
