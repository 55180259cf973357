"""One JSON line per request: client, address, duration, result; no secrets, and questions only on request."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..request_record import RequestRecord

REQUESTS = logging.getLogger("meta_agent_rag.service.requests")
_QUESTION_CHARACTERS = 1000


class JsonLines(logging.Formatter):
    """A record as one line of JSON, with the fields passed as `extra={"fields": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Line breaks in a text are escaped, so that a line cannot be forged."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields: dict[str, Any] = getattr(record, "fields", {})
        line = {"at": at, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
        if record.exc_info and record.exc_info[0] is not None:
            line["error_type"] = record.exc_info[0].__name__
            line["error_at"] = _place(record.exc_info[2])
        return json.dumps(line, default=str)


def _place(trace: Any) -> str | None:
    """The file, line and function of an error: a traceback without the values that it may contain."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def log_request(record: RequestRecord, method: str, path: str, status: int, *, questions: bool) -> None:
    """Log the line of a served request."""
    fields: dict[str, Any] = {
        "request_id": record.request_id,
        "method": method,
        "path": path,
        "status": status,
        "ms": round(1000 * (time.monotonic() - record.arrived), 1),
        "client": None if record.client is None else record.client.id,
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
    if questions and record.question:
        fields["question"] = record.question[:_QUESTION_CHARACTERS]
    REQUESTS.info("request", extra={"fields": fields})


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Send the log of this package, and the server's warnings, to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    levels = {"meta_agent_rag": logging.INFO, "uvicorn": logging.WARNING}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)
