"""The log: one JSON line for each request and event on stderr, without secrets and questions."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .request import RequestContext

_LOG = logging.getLogger(__name__)


class JsonLogLines(logging.Formatter):
    """A record as one line of JSON, with the fields passed as `extra={"fields": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Line breaks in a text are escaped, so that a line cannot be forged.

        Of an error it has the type and the place: neither its message nor a traceback, which may contain values.
        """
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            places = [f"{one.filename}:{one.lineno} in {one.name}" for one in traceback.extract_tb(record.exc_info[2])]
            line |= {"error_type": record.exc_info[0].__name__, "error_at": places[-1] if places else None}
        return json.dumps(line, default=str)


def log_request(context: RequestContext, method: str, path: str) -> None:
    """Log the line of a served request: neither secrets nor its question."""
    fields: dict[str, Any] = {
        "request_id": context.request_id,
        "method": method,
        "path": path,
        "status": context.status,
        "ms": round(1000 * (time.monotonic() - context.arrived), 1),
        "client": None if context.known_client is None else context.known_client.id,
        "error": context.error,
    }
    if context.source_mode:
        fields |= {
            "query_id": context.query_id,
            "corpus": context.corpus,
            "degraded": sorted(context.degraded),
            "calls": len(context.calls),
            "seconds": context.seconds,
        }
    _LOG.info("request", extra={"fields": fields})


def log_to_stderr() -> Callable[[], None]:
    """Send the log of this package, and the server's warnings, to stderr as JSON lines; the result undoes it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogLines())
    levels = {"meta_agent_rag": logging.INFO, "uvicorn": logging.WARNING}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)

    def undo() -> None:
        for name, level in before.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)

    return undo
