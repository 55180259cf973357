"""Post-hook: once the coach has acknowledged the right answer, the learner may celebrate."""

import re
from dataclasses import dataclass

from ....text.normalise import typed
from ..hook import CoachDraft, RuleFinding
from ..words import consists_of, ends_with, holds

_CLAUSE = re.compile(r"([^.!?,;:\u2026\n\u2013\u2014()\u3002\uff01\uff1f\u3001\uff0c]+)([.!?\uff1f\u3002]?)")
_DASH = re.compile(r"\s-+\s")
_CONJUNCTION = re.compile(r"\b(?:because|and|so|but|since|therefore)\b")
_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class ExitTrigger:
    """Recognises an acknowledgement by the reply's own field, which knows every language, or by phrases.

    An explicit rejection overrules both. A hint is never an acknowledgement: the learner has just given up.
    """

    name: str = "exit_trigger"
    priority: int = 20

    def after(self, draft: CoachDraft) -> RuleFinding:
        """See `PostHook`."""
        statements = [
            match[1] for match in _CLAUSE.finditer(_DASH.sub(", ", draft.text)) if match[2] not in {"?", "\uff1f"}
        ]
        parts = [part for said in statements for part in _CONJUNCTION.split(typed(said)[:_LONGEST])]
        clauses = [clause for part in parts if (clause := part.strip())]
        if draft.is_hint or any(map(_rejects, clauses)):
            return RuleFinding()
        return RuleFinding(acknowledged=draft.acknowledges or any(map(_acknowledges, clauses)))


def _rejects(clause: str) -> bool:
    if consists_of(clause, "rejects", "rejects_alone", beside="praise") or ends_with(clause, "rejects"):
        return True
    return holds(clause, "doubts") and (ends_with(clause, "rights") or clause.endswith((" right", " correct")))


def _acknowledges(clause: str) -> bool:
    if consists_of(clause, "acknowledges", beside="praise"):
        return True
    return ends_with(clause, "rights") and not holds(clause, "doubts")


POST_HOOK = ExitTrigger()
