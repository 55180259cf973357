"""Post-hook: no reply, and no hint either, gives the answer away."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....grounding.support.statement import Item, Statement, read
from ....text.language import language_of
from ....text.names import plain
from ....text.normalise import typed
from ..hook import CoachDraft, RuleFinding
from ..phrases import coach_words, holds, reason
from ..wording import ends_with_question, pieces

_LATEST = 2000
"""The number of characters read of what the learner said, the latest: a pasted text would take seconds to read."""


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
    """Does a text mention every word and figure of the answer that the learner has not said?

    Words are compared by their stems, without case and accents, figures by their values. A question that offers
    alternatives does not count, on either side; nor does a statement that denies the word.

    >>> gives_away("It is the EARTH.", "the Earth"), gives_away("Which chamber is larger?", "four chambers")
    (True, False)
    >>> gives_away("What turns, the Sun or the Earth?", "the Earth"), gives_away("It has 4.", "four")
    (False, True)
    """
    learner = "\n".join(said)[-_LATEST:]
    language = language_of(f"{learner}\n{text}")
    spoken, shown = (tuple(_parts(words, language)) for words in (learner, text))
    new = [item for item in read(answer, language).items if not _mentioned(item, spoken)]
    return bool(new) and all(_mentioned(item, shown) for item in new)


def _parts(text: str, language: str) -> Iterator[tuple[Statement, bool]]:
    """The sentences of a text except questions that offer alternatives, and whether each is a question."""
    for piece in pieces(text):
        asks = ends_with_question(piece)
        if not (asks and holds(typed(piece), coach_words().alternatives)):
            yield read(piece.strip(), language), asks


def _mentioned(item: Item, parts: Iterable[tuple[Statement, bool]]) -> bool:
    """A question mentions what it denies: "Isn't it the tilt?"."""
    return any(
        (own.negated == item.negated or (asks and own.negated))
        and (own.same_as(item) or plain(own.written) == plain(item.written))
        for statement, asks in parts
        for own in statement.items
    )


POST_HOOK = AnswerGuard()
