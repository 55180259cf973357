"""After: a reply of the coach is short, and it asks."""

from dataclasses import dataclass

from ..hook import CoachDraft, RuleFinding
from ..phrases import reason
from ..wording import ends_with_question, length, says_something


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Finds what rule of its level a draft breaks.

    A hint need not ask, and may have the length of the first level's replies.
    """

    name: str = "validation"
    priority: int = 10

    def after(self, draft: CoachDraft) -> RuleFinding:
        """See `PostHook`."""
        characters = length(draft.text)
        if draft.is_hint:
            limit = draft.level.hint_limit
            if characters > limit:
                return RuleFinding(violation=reason("hint_too_long", length=characters, limit=limit))
            return RuleFinding(violation="" if says_something(draft.text) else reason("hint_empty"))
        broken = []
        if characters > draft.level.limit:
            broken.append(reason("too_long", length=characters, limit=draft.level.limit))
        if not ends_with_question(draft.text):
            broken.append(reason("no_question"))
        return RuleFinding(violation=" ".join(broken))


POST_HOOK = Validation()
