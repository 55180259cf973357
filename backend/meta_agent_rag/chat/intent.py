"""What a message wants, and what it means on its own: a short English list, else one structured call."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints

from ..agent.prompting import ReplyModel
from ..errors import ModelError
from ..llm.client import ModelSession
from ..llm.local import own_model_file
from ..llm.messages import Message
from ..prompts import fenced, phrase, prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..text.normalise import typed
from ..wording import printable
from .history import History, transcript
from .phrases import reply_phrase

STAGE = "rewrite_query"
LISTED = 40
"""The most documents in a list."""

Intent: TypeAlias = Literal["question", "small_talk", "about_conversation", "about_documents", "change_last_answer"]

_LONGEST_ADDITION = 15
"""How many words longer than the message its standalone form may be."""
_MOST_WORDS = 12

_SMALL_TALK = {
    "thanks": "thanks thank thx cheers",
    "farewell": "bye goodbye",
    "greeting": "hello hi hey greetings morning afternoon evening",
    "acknowledgement": "ok okay perfect great good nice cool wow excellent fine understood interesting wonderful",
}
"""The words of each kind; of several, the first kind counts."""
_KINDS = {word: kind for kind, words in reversed(_SMALL_TALK.items()) for word in words.split()}
_BESIDE = frozenset(
    "you very much so a lot for the your that this it was is all of and really many well then now there again everyone "  # noqa: SIM905
    "help answer answers explanation explanations night day have see talk later i".split()
)
"""Words that may stand beside those."""
_REQUESTS: Mapping[tuple[Intent, str], Sequence[str]] = {
    ("small_talk", "capabilities"): ["(who|what) are you|what can (you|i) (do|ask)( you)?|how do you work|help( me)?"],
    ("small_talk", "off_topic"): [
        r"(write|tell|sing)( me| us)? (a|an|another)( \w+)? (poem|song|joke|story|limerick)( .*)?",
        "(what|how)( i)?s the weather( like| today| tomorrow| now| outside)*|what time is it( now)?",
    ],
    ("about_conversation", ""): [
        "what (have|did) (we|i|you)( just)? (discuss|talk about|cover|ask|say)( you)?( so far| before)?",
        "what have (we|i) (discussed|talked about|covered|said|asked)( you)?( so far| before| today)?",
        "(summari[sz]e|recap|sum up) (our|this|the) (conversation|discussion|chat)( so far)?|recap",
        r"what (was|were) (my|your) (\w+ )?(questions?|answers?)( so far)?",
        "how many questions (have|did) i ask(ed)?( you)?( so far)?",
    ],
    ("about_documents", ""): [
        "(what|which) (documents|files|sources)( (do you (have|know)|are (there|available)( here)?|can i ask.*))?",
        "(list|show)( me)?( all)?( of)?( the| your| my)? (documents|files|sources)",
        "how many (documents|files)( do you have| are there)?",
    ],
    ("change_last_answer", ""): [
        "(say|put|explain|give|repeat|rephrase|translate|shorten|simplify) (that|this|it)( again| in .*)*",
        "(in|with|using) (simple|simpler|plain|other|fewer|your own) (words|terms|language)",
        "(a bit |much )?(shorter|longer|simpler)|in (english|german|french|spanish|japanese|chinese)",
    ],
}
"""Whole messages in English, in the form of `text.normalise.typed` and without courtesy."""
_COURTESY = re.compile(r"^(please|and|so|well|now|could you|can you|would you) | (please|now|for me|thanks|thank you)$")
_POINTS_BACK = re.compile(
    r"\b(he|she|it|they|him|her|them|his|its|their|this|that|these|those|there|then|one|ones|same|other|another)\b"
    r"|^(and|but|or|so|why|how come|what about|how about|what else)\b"
)


@dataclass(frozen=True, kw_only=True)
class Interpretation:
    """What a message wants.

    `standalone` is the message in a form that can be searched for without the conversation, and `refers_back` says that
    it needed the conversation. `kind` names the reply to small talk. `gives_up` says that the writer has no answer to
    the question before. `fault` is why no model could be asked.
    """

    intent: Intent = "question"
    standalone: str
    refers_back: bool = False
    kind: str = ""
    gives_up: bool = False
    fault: str = ""


def _one_line(value: object) -> object:
    return " ".join(str(value).split()) if value is not None else ""


class IntentReply(ReplyModel):
    """Stage `rewrite_query`."""

    intent: Intent
    standalone: Annotated[str, BeforeValidator(_one_line), StringConstraints(strip_whitespace=True)] = Field(
        default="", json_schema_extra={"maxLength": 300}
    )
    gives_up: bool = False


async def interpreted(message: str, history: History, model: ModelSession) -> Interpretation:
    """What a message wants, after at most one call.

    No call is made without a conversation to refer to, for a message of the English list, or with the packaged model,
    which cannot follow the task. If the call fails in a way that may not affect others, the message is a question as it
    stands. Raises a `ModelError` that stops a run, or a `BudgetError`.
    """
    listed = read_offline(message, history)
    if history.is_empty or listed.intent != "question":
        return listed
    settings = model.owner.settings
    if model.owner.serving(STAGE)[1].is_embedded and own_model_file(settings) is None:  # the packaged model
        return _joined(message, history)
    task = prompt("rewriter", settings.prompts_dir).text(
        summary=fenced(history.summary) or phrase("nothing_yet"),
        conversation=transcript(history.exchanges, settings.memory_tokens) or phrase("nothing_yet"),
        question=fenced(message),
    )
    try:
        reply = await model.ainvoke(STAGE, [Message(role="user", content=task)], IntentReply)
    except ModelError as error:
        if error.stops_run:
            raise
        return Interpretation(standalone=message, refers_back=True, fault=str(error))
    if reply.intent == "change_last_answer" and history.exchanges:
        return replace(_changing(history), gives_up=reply.gives_up)
    intent: Intent = "question" if reply.intent == "change_last_answer" else reply.intent
    standalone = reply.standalone
    if not standalone or len(standalone.split()) > len(message.split()) + _LONGEST_ADDITION:
        standalone = message
    refers_back = intent == "question" and typed(standalone) != typed(message)
    kind = "small_talk" if intent == "small_talk" else ""
    return Interpretation(
        intent=intent, standalone=standalone, refers_back=refers_back, kind=kind, gives_up=reply.gives_up
    )


def read_offline(message: str, history: History) -> Interpretation:
    """What a message wants by the English list; whatever is not in it is a question.

    >>> read_offline("Perfect, thank you very much for the explanation.", History()).intent
    'small_talk'
    >>> read_offline("Thanks, and who built it?", History()).intent
    'question'
    """
    text = typed(message)
    while (shorter := _COURTESY.sub("", text)) != text:
        text = shorter
    if kind := _small_talk(message):
        return Interpretation(intent="small_talk", kind=kind, standalone=message)
    for (intent, kind), patterns in _REQUESTS.items():
        if not any(re.fullmatch(pattern, text) for pattern in patterns):
            continue
        if intent == "change_last_answer":
            return _changing(history) if history.exchanges else Interpretation(standalone=message)
        return Interpretation(intent=intent, kind=kind, standalone=message)
    return Interpretation(standalone=message)


def _small_talk(message: str) -> str:
    """The kind of a message made of small talk alone, else an empty string."""
    said = typed(message).split()
    if not 0 < len(said) <= _MOST_WORDS or message.rstrip().endswith("?"):
        return ""
    kinds = {_KINDS[word] for word in said if word in _KINDS}
    listed = all(word in _KINDS or word in _BESIDE for word in said)
    return next((kind for kind in _SMALL_TALK if listed and kind in kinds), "")


def _changing(history: History) -> Interpretation:
    """The last question once more, to be answered in another form."""
    return Interpretation(intent="change_last_answer", standalone=history.exchanges[-1].standalone, refers_back=True)


def _joined(message: str, history: History) -> Interpretation:
    """A follow-up after the question that it points back to, if it does."""
    if not history.exchanges or not _POINTS_BACK.search(typed(message)):
        return Interpretation(standalone=message)
    before = history.exchanges[-1].question
    return Interpretation(standalone=f"{before} {message}", refers_back=True)


def answer_without_search(reading: Interpretation, history: History, documents: Sequence[DocumentRecord]) -> str:
    """The answer to small talk, or to a message about the conversation or the documents themselves.

    About the conversation, it is the summary of older exchanges, and the latest questions, each once and in the user's
    words; about the documents, their titles and files, at most `LISTED`.
    """
    if reading.intent == "about_documents":
        if not documents:
            return reply_phrase("documents_none")
        names = [(" ".join(one.title.split()), PurePath(one.source).name) for one in documents[:LISTED]]
        lines = [f"- {printable(title)} ({printable(file)})" for title, file in names]
        more = [f"and {len(documents) - LISTED} more"] if len(documents) > LISTED else []
        return "\n".join([reply_phrase("documents"), *lines, *more, "", reply_phrase("documents_mention")])
    if reading.intent != "about_conversation":
        return reply_phrase(reading.kind)
    if not history.turns:
        return reply_phrase("nothing_discussed")
    asked: dict[str, str] = {}
    for one in history.exchanges:
        asked.setdefault(typed(one.question), f"{one.turn}. {one.question}")
    parts = [reply_phrase("discussed_before", summary=history.summary)] if history.summary else []
    return "\n\n".join([*parts, "\n".join([reply_phrase("discussed"), *asked.values()])])
