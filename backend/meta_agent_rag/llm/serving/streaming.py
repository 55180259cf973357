"""Puts a streamed chat completion together, as if it had arrived whole."""

from collections.abc import AsyncIterable, Callable, Mapping
from typing import Any

ASKED_FOR: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The parameters that request a stream which ends with its usage."""


async def gathered(chunks: AsyncIterable[object], on_text: Callable[[str], None]) -> dict[str, Any]:
    """The completion that a stream's chunks add up to; `on_text` receives the text so far whenever it grows.

    Raises `ValueError` if the stream ends early or holds anything but chunks of a completion.
    """
    text, finish_reason, usage = "", None, None
    tokens: list[Any] = []
    async for chunk in chunks:
        try:
            usage = chunk.get("usage") or usage  # type: ignore[attr-defined]  # checked by this try block
            for choice in (chunk.get("choices") or ())[:1]:  # type: ignore[attr-defined]
                finish_reason = choice.get("finish_reason") or finish_reason
                tokens += (choice.get("logprobs") or {}).get("content") or ()
                piece = (choice.get("delta") or {}).get("content")
                if isinstance(piece, str) and piece:
                    text += piece
                    on_text(text)
        except (AttributeError, TypeError) as fault:
            raise ValueError("not a chunk of a chat completion") from fault
    if finish_reason is None:
        raise ValueError("the stream ended before the reply did")
    choice = {"message": {"content": text}, "finish_reason": finish_reason, "logprobs": {"content": tokens}}
    return {"choices": [choice], "usage": usage}
