"""The evaluator-critic: which deficit explains an inadequate draft?"""

import json

from ..errors import AuthenticationError, BalanceError, ModelError
from ..prompts import phrase
from .context import Context
from .prompting.messages import concluded, drafted, task
from .prompting.packing import Packed
from .prompting.replies import critique_schema
from .state import NO_DEFICIT, Diagnosis, Round, Signals


async def evaluate(context: Context, question: str, judged: Round, packed: Packed) -> Diagnosis:
    """Ask the critic; if its call fails, heuristic rules decide, and the diagnosis says so.

    Raises only errors that must stop the run: a refused key, an empty account, a budget.
    """
    deficits, draft = context.deficits, judged.draft
    prompt = task(
        context,
        "evaluate",
        question,
        packed,
        draft=drafted(draft, judged.signals),
        reference=concluded(judged.second_answer),
        quotes="; ".join(draft.quotes) or phrase("nothing_quoted"),
        deficits="\n".join(f"- {_described(deficit.name, deficit.when, deficit.examples)}" for deficit in deficits),
        names=json.dumps([*deficits.names, NO_DEFICIT]),
    )
    try:
        reply = await context.model.ainvoke("evaluate", prompt, critique_schema(deficits), round_=judged.index)
    except (AuthenticationError, BalanceError):
        raise
    except ModelError as error:
        return _by_rule(context, judged.signals, error)
    return Diagnosis(
        deficit=reply.deficit,
        rationale=reply.rationale,
        error_type=reply.error_type,
        suggestion=reply.suggestion,
        suggested_queries=tuple(reply.suggested_queries),
        source="critic",
    )


def _described(name: str, when: str, examples: tuple[str, ...]) -> str:
    return f"{name}: {when}" + (f" (for instance: {'; '.join(examples)})" if examples else "")


def _by_rule(context: Context, signals: Signals | None, error: ModelError) -> Diagnosis:
    deficit = context.deficits.guess(signals)
    return Diagnosis(
        deficit=deficit.name,
        rationale=f"a rule chose it: {deficit.when}",
        error_type="none",
        suggestion="",
        suggested_queries=(),
        source="heuristic",
        critic_error=str(error),
    )
