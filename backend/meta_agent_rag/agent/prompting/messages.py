"""Lays out a call's messages so that all stages of one question share one prefix.

System message, evidence and question come first and stay the same; the stage's task comes last.
New evidence is appended to the old, so a provider's prefix cache still covers what was there before.
"""

from ...grounding.answer_kind import kind_asked
from ...llm.messages import Message
from ...prompts import phrase, prompt
from ...settings import Settings
from ..context import Context
from ..state import Draft, SecondAnswer, Signals
from .packing import Packed


def task(context: Context, name: str, question: str, packed: Packed | None, **values: object) -> tuple[Message, ...]:
    """The messages of a call of the loop; the user's own words precede their interpretation."""
    shown = f"{context.asked}\n{phrase('understood_as')} {question}" if context.asked else question
    system = "grounded" if context.grounded else "system"
    return messages(context.settings, name, shown, packed, system=system, **values)


def messages(
    settings: Settings, name: str, question: str, packed: Packed | None, *, system: str = "system", **values: object
) -> tuple[Message, ...]:
    """The messages of a call with the prompt `name`; without `packed` the model sees no evidence.

    Every prompt receives the rule for short answers, so that all methods state it in the same words.
    """
    folder = settings.prompts_dir
    if packed is None:
        shown = prompt("question", folder).text(question=question)
    else:
        shown = prompt("evidence", folder).text(passages=packed.text or "(no passage was found)", question=question)
    own = prompt(name, folder, methods=settings.methods_dir)
    asked = own.text(question=question, short_answer_rule=phrase("short_answer_rule"), **values)
    return (
        Message(role="system", content=prompt(system, folder).text()),
        Message(role="user", content=f"{shown}\n\n{asked}"),
    )


def in_conversation(context: Context, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with the conversation that the question refers to, if any, after the task."""
    if not context.conversation:
        return messages
    text = prompt("conversation", context.settings.prompts_dir).text(conversation=context.conversation)
    return in_manner(messages, text)


def in_manner(prompt: tuple[Message, ...], manner: str) -> tuple[Message, ...]:
    """The messages, with instructions on style, if any, after the task."""
    if not manner:
        return prompt
    *before, last = prompt
    return (*before, Message(role=last.role, content=f"{last.content}\n\n{manner}"))


def asked_for(context: Context, question: str) -> str:
    """The kind of answer that the question's wording asks for; in grounded runs a verdict may be phrased freely."""
    kind = kind_asked(question)
    if context.grounded and kind == "verdict":
        return ""
    return f"{phrase('asks_for')} {phrase(f'kind_{kind}')}." if kind else ""


def drafted(draft: Draft, signals: Signals | None) -> str:
    """A draft as the critic sees it."""
    strays = f" {phrase('another_kind')}" if signals is not None and signals.of_kind is False else ""
    return f"{draft.answer} (short answer: {draft.short_answer}){strays}"


def concluded(second: SecondAnswer | None) -> str:
    """The second answer as the critic sees it: its steps and its short answer."""
    if second is None or second.error is not None:
        return phrase("nothing_quoted")
    return " ".join((*second.steps, f"(short answer: {second.short_answer})"))
