"""Post-hook: a reply of the coach must be short and end with a question."""

from dataclasses import dataclass

from ..hook import CoachDraft, RuleFinding
from ..words import ends_with_question, length, reason, says_something


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Finds the rule of its level that a draft breaks.

    A hint need not be a question, and may be as long as the first level's replies.
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
