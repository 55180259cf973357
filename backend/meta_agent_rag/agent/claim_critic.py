"""The critic over single claims, for those who want more than rules (CLAIM_CHECK=critic)."""

from collections.abc import Sequence
from dataclasses import replace

from ..errors import BudgetError, ModelError
from ..grounding.claims import Claim
from ..grounding.support import Support
from ..llm.ledger import LedgerRow
from .engine import Answer, Engine
from .prompting.messages import messages
from .prompting.packing import pack
from .prompting.replies import ClaimsReply


async def refuted(
    engine: Engine,
    answer: Answer,
    stated: Sequence[Claim],
    support: Sequence[Support],
    *,
    question_id: str = "",
    deadline: float | None = None,
) -> tuple[tuple[Support, ...], tuple[LedgerRow, ...]]:
    """The support that remains once the critic has looked, in one call; and what it cost.

    It refutes what the rules let pass, and never the other way round. Where the call fails, or is not done by
    the deadline (a `time.monotonic` moment), the rules' verdict stands. Raises what must stop the run.
    """
    session = engine.model.session(question_id, method="check_claims", deadline=deadline)
    listed = "\n".join(f"{number}. {claim.text}" for number, claim in enumerate(stated, start=1))
    packed = pack(answer.evidence, engine.model.evidence_tokens())
    prompt = messages(engine.settings, "check_claims", answer.question, packed, system="grounded", claims=listed)
    try:
        reply = await session.ainvoke("check_claims", prompt, ClaimsReply)
    except BudgetError:
        return tuple(support), tuple(session.rows)
    except ModelError as error:
        if error.stops_run:
            raise
        return tuple(support), tuple(session.rows)
    checked = (
        replace(found, supported=found.supported and number not in reply.unsupported)
        for number, found in enumerate(support, start=1)
    )
    return tuple(checked), tuple(session.rows)
