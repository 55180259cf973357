"""Puts a streamed chat completion together, as if it had arrived whole."""

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Any

from .http import HttpError

ASKED_FOR: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The parameters that request a stream which ends with its usage."""

_END = "[DONE]"
_OVER = object()
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])")
_LONGEST_LINE = 2**26
"""In bytes; a longer line is no chunk of a reply."""


async def events(pieces: AsyncIterable[bytes]) -> AsyncIterator[object]:
    """The parsed data of server-sent events, up to the one that ends the stream.

    Raises an `HttpError` for an error that the stream reports, `ValueError` if an event is not JSON.
    """
    data: list[str] = []
    async for line in _lines(pieces):
        text = line.decode("utf-8", "replace").rstrip("\r")
        if text.startswith("data:"):
            data.append(text[5:].removeprefix(" "))
        elif not text and data:
            event, data = "\n".join(data), []
            if event.startswith(_END):
                return
            yield _parsed(event)
    if data and not data[0].startswith(_END):
        yield _parsed("\n".join(data))


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = _LINE_END.split(rest + piece)
        for line in whole:
            yield line
        if len(rest) > _LONGEST_LINE:
            raise ValueError("a line of the stream is too long")
    if rest:
        yield rest


def _parsed(event: str) -> object:
    found = json.loads(event)
    if isinstance(found, Mapping) and (error := found.get("error")):
        said = error.get("message") if isinstance(error, Mapping) else error
        raise HttpError(str(said or "an error without a reason"), broken=True)
    return found


class ListenerError(Exception):
    """Carries an `error` of `on_text` past the handlers of the server's faults."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def gathered(chunks: AsyncIterable[object], on_text: Callable[[str], None]) -> dict[str, Any]:
    """The completion that a stream's chunks add up to; `on_text` receives the text so far whenever it grows.

    Raises `ValueError` if the stream ends early or holds anything but chunks of a completion, and `ListenerError`.
    """
    text, finish_reason, usage = "", None, None
    tokens: list[Any] = []
    stream = aiter(chunks)
    while (chunk := await _next(stream, complete=finish_reason is not None and usage is not None)) is not _OVER:
        pieces: list[str] = []
        try:
            usage = chunk.get("usage") or usage  # type: ignore[attr-defined]  # checked by this try block
            for choice in (chunk.get("choices") or ())[:1]:  # type: ignore[attr-defined]
                finish_reason = choice.get("finish_reason") or finish_reason
                tokens += (choice.get("logprobs") or {}).get("content") or ()
                piece = (choice.get("delta") or {}).get("content")
                pieces += [piece] if isinstance(piece, str) and piece else []
        except (AttributeError, TypeError) as fault:
            raise ValueError("not a chunk of a chat completion") from fault
        for piece in pieces:
            text += piece
            _notify(on_text, text)
    if finish_reason is None:
        raise ValueError("the stream ended before the reply did")
    choice = {"message": {"content": text}, "finish_reason": finish_reason, "logprobs": {"content": tokens}}
    return {"choices": [choice], "usage": usage}


def _notify(on_text: Callable[[str], object], text: str) -> None:
    try:
        on_text(text)
    except Exception as error:
        raise ListenerError(error) from error


async def _next(stream: AsyncIterator[object], *, complete: bool) -> object:
    """The next chunk, or `_OVER`; a complete reply is paid for, so that a fault of the stream no longer matters."""
    try:
        return await anext(stream, _OVER)
    except Exception:
        if complete:
            return _OVER
        raise
