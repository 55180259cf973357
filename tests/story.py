"""A script for the demo's tests: a wrong first draft is flagged, diagnosed, researched and corrected."""

from collections.abc import Mapping

from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing import Scripted
from meta_agent_rag.testing.scripted import Line

QUESTION_ID = "sample-001"
QUESTION = "In which village was the designer of the Candlewright Bridge born?"
WRONG, RIGHT = "Kelmouth", "Oxlode"
QUERY = "Berrick Haswade birthplace"
DESIGNED = "It was designed by Berrick Haswade and opened in May 1868"
BORN = "A slate carter's son, he was born at Oxlode"


def _born_is_known(request: Request) -> bool:
    return BORN in request.messages[-1].content


def _second_answer(request: Request) -> Line:
    said = RIGHT if _born_is_known(request) else "Cravenhythe"
    return {"steps": ["Berrick Haswade designed it.", f"He was born at {said}."], "short_answer": said}


def _rewrite(request: Request) -> Line:
    said = RIGHT if _born_is_known(request) else WRONG
    return {
        "steps": ["Berrick Haswade designed it."],
        "quotes": [DESIGNED, BORN],
        "answer": f"Berrick Haswade designed the Candlewright Bridge [1], and he was born at {said} [2].",
        "short_answer": said,
    }


STORY: Mapping[str, Scripted] = {
    "write": {
        "steps": ["The bridge was designed by Berrick Haswade."],
        "quotes": [DESIGNED, "Berrick Haswade came from Kelmouth."],
        "answer": "Berrick Haswade designed the Candlewright Bridge [1], and he came from Kelmouth [1].",
        "short_answer": WRONG,
    },
    "second_answer": _second_answer,
    "evaluate": {
        "rationale": "One passage names the designer, and none that was read says where he was born.",
        "deficit": "insufficient_knowledge",
        "error_type": "incomplete_reasoning",
        "suggestion": "Look for the birthplace of Berrick Haswade.",
        "suggested_queries": [QUERY],
    },
    "rewrite": _rewrite,
}
