"""A scripted model that reads: it answers from the supporting sentences if its prompt contains them."""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from meta_agent_rag.llm.messages import Request
from meta_agent_rag.testing.scripted import ScriptedModel

NOT_FOUND: Mapping[str, Any] = {
    "steps": [],
    "quotes": [],
    "answer": "NOT FOUND",
    "short_answer": "NOT FOUND",
    "confidence": 0.9,
}
"""The draft of a writer that found nothing."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A question with its answer and its supporting sentences, each with the title of its passage."""

    question: str
    answer: str
    supporting: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Known":
        """From a question of a data set in HotpotQA's form."""
        context = dict(row["context"])
        supporting = tuple((title, context[title][place].strip()) for title, place in row["supporting_facts"])
        return cls(question=row["question"], answer=row["answer"], supporting=supporting)


def passages_of(request: Request) -> dict[int, str]:
    """The texts of a prompt's passages by number."""
    found = re.findall(r'<passage n="(\d+)"[^>]*>(.*?)</passage>', request.messages[1].content, re.DOTALL)
    return {int(number): html.unescape(text) for number, text in found}


def question_of(request: Request) -> str:
    """The question in a prompt."""
    found = re.findall(r"^Question: (.*)$", request.messages[1].content, re.MULTILINE)
    return str(found[0])


def reading_model(questions: Iterable[Known], *, barely: bool = False) -> ScriptedModel:
    """A model that quotes the supporting sentences and gives the answer, or says NOT FOUND.

    Its answer repeats them and then gives the bare answer or, with `barely`, gives only the bare answer. Its critic
    asks for the missing titles.
    """
    known = {one.question: one for one in questions}

    def write(request: Request) -> Mapping[str, Any]:
        return _draft(known[question_of(request)], passages_of(request), barely)

    def evaluate(request: Request) -> Mapping[str, Any]:
        passages = " ".join(passages_of(request).values())
        sentences = known[question_of(request)].supporting
        missing = [title for title, sentence in sentences if sentence not in passages]
        return {
            "rationale": "A hop is missing.",
            "deficit": "insufficient_knowledge" if missing else "none",
            "error_type": "incomplete_reasoning",
            "suggestion": "",
            "suggested_queries": missing,
        }

    def second_answer(request: Request) -> Mapping[str, Any]:
        return {"steps": [], "short_answer": known[question_of(request)].answer}

    def plan(request: Request) -> Mapping[str, Any]:
        asked = request.messages[-1].content.partition("Question: ")[2].strip()
        return {"chains": [{"of": "", "facts": [asked]}], "operator": "last"}

    def route(request: Request) -> Mapping[str, Any]:
        answer = known[question_of(request)].answer
        return {"steps": [], "rationale": "It says so.", "answer": f"It is {answer}.", "short_answer": answer}

    return ScriptedModel(
        {
            "write": write,
            "rewrite": write,
            "evaluate": evaluate,
            "second_answer": second_answer,
            "plan": plan,
            "route": route,
            "look_up": "unknown",
            "recall": "unknown",
        }
    )


def _draft(known: Known, passages: Mapping[int, str], barely: bool) -> Mapping[str, Any]:
    places = [
        next(((number, sentence) for number, text in passages.items() if sentence in text), None)
        for _, sentence in known.supporting
    ]
    found = [place for place in places if place is not None]
    if len(found) < len(places):
        return NOT_FOUND
    stated = " ".join(f"{sentence.rstrip('.')} [{number}]." for number, sentence in found)
    numbers = ", ".join(str(number) for number in dict.fromkeys(number for number, _ in found))
    return {
        "steps": [],
        "quotes": [sentence for _, sentence in found],
        "answer": f"{'' if barely else stated} {known.answer.capitalize()} [{numbers}].",
        "short_answer": known.answer,
        "confidence": 0.9,
    }
