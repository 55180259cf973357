"""Post-hook: no reply, and no hint either, gives the answer away."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from text_to_num import alpha2digit

from ....text.names import content_words, stop_words, words
from ....text.normalise import typed
from ..hook import CoachDraft, RuleFinding
from ..words import ends_with_question, holds, language_of, pieces, reason

_LATEST = 2000
"""The number of characters read of what the learner said, the latest."""
_CLAUSE = re.compile(
    r",\s*(?=(?:it|he|she|they|we|you|this|that|these|those|there|but|not|never|rather|instead)\b)"
    r"|:(?!\d)|[;\u2014\u3001\uff0c]|\bbut\b",
    re.IGNORECASE,
)
"""Ends a clause; a comma may also stand within a list of what is denied."""
_DENIAL = re.compile(
    r"\b(?:not(?! only)|never(?! forget)|no(?! doubt| wonder)|isnt|wasnt|arent|doesnt|dont|didnt)\b|ない|ません"
)
_ENDING = 3
_SHORTEST_STEM = 3


@dataclass(frozen=True, kw_only=True)
class AnswerGuard:
    """Compares a draft with the answer that the model named for it; without one, nothing is compared."""

    name: str = "answer_guard"
    priority: int = 15

    def after(self, draft: CoachDraft) -> RuleFinding:
        """See `PostHook`."""
        said = (*draft.earlier, draft.message)
        given = any(gives_away(draft.text, answer, said) for answer in draft.answers)
        return RuleFinding(violation=reason("gives_answer") if given else "")


def gives_away(text: str, answer: str, said: Iterable[str] = ()) -> bool:
    """Whether a text mentions every word and figure of the answer that the learner has not said.

    Words are compared without endings, case and accents, figures by value, Japanese answers as a whole. A question that
    offers alternatives does not count, on either side; nor does a statement that denies the word.

    >>> gives_away("It is the EARTH.", "the Earth"), gives_away("Which chamber is larger?", "four chambers")
    (True, False)
    >>> gives_away("What turns, the Sun or the Earth?", "the Earth"), gives_away("It has 4.", "four")
    (False, True)
    """
    spoken, shown = " ".join(_told("\n".join(said)[-_LATEST:])), " ".join(_told(text))
    if language_of(answer) == "ja":
        return typed(answer) in typed(shown) and typed(answer) not in typed(spoken)
    learner, reader = words(_in_digits(spoken)), words(_in_digits(shown))
    wanted = [] if set(words(answer)) <= set(stop_words()) else content_words(_in_digits(answer))
    new = [word for word in wanted if not any(_akin(word, other) for other in learner)]
    return bool(new) and all(any(_akin(word, other) for other in reader) for word in new)


def _told(text: str) -> Iterator[str]:
    """The sentences of a text, without questions that offer alternatives and clauses that deny something."""
    for piece in pieces(text):
        if not ends_with_question(piece):
            yield " ".join(clause for clause in _CLAUSE.split(piece) if not _DENIAL.search(typed(clause)))
        elif not holds(typed(piece), "alternatives"):
            yield piece


def _in_digits(text: str) -> str:
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).replace("%", " percent")
    return str(alpha2digit(plain, "en"))


def _akin(word: str, other: str) -> bool:
    """Whether two words are equal except for an ending: "chambers" and "chamber", "tilt" and "tilted"."""
    if word == other or word.isdigit() or other.isdigit():
        return word == other
    stem = max(_SHORTEST_STEM, max(len(word), len(other)) - _ENDING)
    return word[:stem] == other[:stem]


POST_HOOK = AnswerGuard()
