"""A model's text as a validated value, or the reason why it is invalid: never a default of success."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from ..prompts import prompt
from .messages import Message, Reply

Parsed = TypeVar("Parsed", bound=BaseModel)

_LONGEST_QUOTED_REPLY = 2000
"""Characters of a malformed reply that are sent back to the model."""
_THINKING = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)


class MalformedReplyError(ValueError):
    """The text is not what was requested; the message says what is wrong with it."""


@cache
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply, generated once."""
    return schema.model_json_schema()


def without_thinking(text: str) -> str:
    """The reply without the reasoning that some models print before it.

    If the chat template opened it, the reply contains only its end. An object that quotes such a tag is left alone.
    """
    if text.lstrip().startswith("{"):
        return text.strip()
    return _THINKING.sub("", text).rpartition("</think>")[2].strip()


def parse_reply(text: str, schema: type[Parsed], *, cut: bool = False) -> Parsed:
    """Extract JSON from a reply, repair broken syntax, and validate it.

    A reply that was `cut` at its token limit is not repaired, because its last field may be incomplete. A schema with a
    class method `from_text` may read a reply without JSON itself. Raises `MalformedReplyError`.
    """
    plain = without_thinking(text)
    reader = getattr(schema, "from_text", None) if "{" not in plain else None
    if reader is not None and (read := reader(plain)) is not None:
        return cast(Parsed, read)
    value = _json_object(plain, cut=cut)
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the object"
        raise MalformedReplyError(f"{where}: {fault['msg']}") from None


def _json_object(text: str, *, cut: bool) -> dict[str, Any]:
    try:
        value = _read(text, cut=cut)
        # a lone surrogate, from a truncated escape, can be neither stored nor sent: it becomes a question mark
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise MalformedReplyError("the reply is nested too deeply") from None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise MalformedReplyError("the reply is not a JSON object")
    return value


def _read(text: str, *, cut: bool) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        if cut:
            raise MalformedReplyError("the reply was cut at its token limit; be brief") from None
    start = text.find("{")
    if start < 0:
        raise MalformedReplyError("the reply contains no JSON object")
    import json_repair

    try:
        return json_repair.loads(text[start:])
    except ValueError as error:  # nested beyond what it follows
        raise MalformedReplyError(f"the reply is not readable JSON ({error})") from None


def asked_again(reply: Reply, fault: MalformedReplyError, folder: Path | None) -> tuple[Message, Message]:
    """The messages to a model after a malformed reply: the reply, and its fault."""
    return (
        Message(role="assistant", content=reply.text[:_LONGEST_QUOTED_REPLY]),
        Message(role="user", content=prompt("reask", folder).text(fault=str(fault))),
    )
