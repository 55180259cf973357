"""Remembers that the hub did not respond, so that not every command waits for it."""

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class HubSilence:
    """A small file with the hub's address and the time at which it was found unreachable.

    It applies for an hour and only to that address. If it cannot be written, the hub is contacted each time.
    """

    file: Path

    def minutes(self) -> int | None:
        """The minutes since the hub did not respond; `None` if it should be contacted."""
        try:
            noted = json.loads(self.file.read_text(encoding="utf-8"))
            passed = time.time() - float(noted["at"])
            return int(passed // 60) if noted["hub"] == _hub() and 0 <= passed < _SECONDS else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def note(self, *, silent: bool) -> None:
        """Record whether the hub just responded."""
        with suppress(OSError):
            if not silent:
                self.file.unlink(missing_ok=True)
                return
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({"hub": _hub(), "at": time.time()}), encoding="utf-8")


def _hub() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
