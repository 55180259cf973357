"""The log: one JSON line for each request and event on stderr, without secrets, and with questions only on request."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from .request_record import RequestRecord

_LOG = logging.getLogger(__name__)


class JsonLogLines(logging.Formatter):
    """A record as one line of JSON, with the fields passed as `extra={"fields": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Line breaks in a text are escaped, so that a line cannot be forged."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"error_type": record.exc_info[0].__name__, "error_at": _place(record.exc_info[2])}
        return json.dumps(line, default=str)


def _place(trace: Any) -> str | None:
    """The file, line and function of an error: a traceback without the values that it may contain."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def log_request(record: RequestRecord, method: str, path: str) -> None:
    """Log the line of a served request: neither secrets nor its question."""
    fields: dict[str, Any] = {
        "request_id": record.request_id,
        "method": method,
        "path": path,
        "status": record.status,
        "ms": round(1000 * (time.monotonic() - record.arrived), 1),
        "client": None if record.known_client is None else record.known_client.id,
        "error": record.error,
    }
    if record.source_mode:
        fields |= {
            "query_id": record.query_id,
            "corpus": record.corpus,
            "degraded": sorted(record.degraded),
            "calls": len(record.calls),
            "seconds": record.seconds,
        }
    _LOG.info("request", extra={"fields": fields})


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Send the log to stderr while this is open."""
    undo = log_to_stderr()
    try:
        yield
    finally:
        undo()


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
