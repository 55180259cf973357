"""One exception tree; every message says what was wrong and what to do next.

MetaRagError
|-- InputError             what the caller gave is wrong
|   |-- SettingsError        a setting's name or value
|   |-- DataFileError        a data file, with its row and field
|   |-- UnknownNameError     no such data set, method, deficit, ...
|   |-- DuplicateNameError   two entries of one registry share a name
|   `-- PromptError          a prompt file or a value that it needs
|-- ModelError             a model did not serve a call
|   |-- AuthenticationError  401, 403: the key was rejected         (stops a run)
|   |-- BalanceError         402: the account has no balance        (stops a run)
|   |-- UnreachableError     the server does not respond            (stops a run)
|   |   `-- LostConnectionError  the connection broke: the call may have been billed
|   |-- UnknownModelError    404: the server does not know the model  (stops a run)
|   |-- RefusedError         the server rejected the request
|   |   |-- BusyError          429, 5xx: worth another attempt, which costs nothing
|   |   `-- TransientError     a late or unreadable reply: worth another attempt
|   |-- ContextWindowError   the prompt exceeds the model's context window
|   `-- StructuredOutputError  prose, or the wrong shape, instead of the requested JSON
|       `-- WithheldError      a refusal, a filter, reasoning alone, or an empty reply
|-- BudgetError            a call was not made, to keep within a limit
|   |-- CostLimitError       it could cost more than is left
|   |-- UnpricedModelError   a cost limit is set but the model has no known price (stops a run)
|   `-- DeadlineError        there is no time left for it
|-- ExtensionError         the code of an extension (a method, an operator, ...) raised an error of its own
|-- MissingExtraError      a library from an extra of the package is missing
|-- StorageError           a file cannot be written: disk full, no permission (stops a run)
|-- CorpusError            a corpus is missing, in use, foreign, or built with other settings
`-- RequestError           the service refuses a request, with a status and a code
"""

from typing import Literal, TypeAlias

LimitReason: TypeAlias = Literal["budget", "cost_limit", "deadline"]
"""Why a limit ended the loop."""


class MetaRagError(Exception):
    """Base of all errors that this package raises deliberately.

    `exit_code` is a command's exit code for it: 2 if the caller can fix it
    (input, key, balance, server, model), 1 otherwise. `stops_run` is true if every
    further question would fail in the same way.
    """

    exit_code = 2
    stops_run = False


class InputError(MetaRagError):
    """What the caller gave is wrong."""


class SettingsError(InputError):
    """A setting's name or value is wrong."""


class DataFileError(InputError):
    """A data file is missing or malformed; the message names row and field."""


class UnknownNameError(InputError):
    """No entry of a registry has this name."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        choice = f"choose from: {', '.join(sorted(known))}" if known else "none exist yet"
        super().__init__(f"There is no {kind} {name!r}; {choice}.")


class DuplicateNameError(InputError):
    """Two entries of one registry share a name."""


class PromptError(InputError):
    """A prompt file is malformed, or a value that it needs was not given."""


class ModelError(MetaRagError):
    """A model could not serve a call."""


class AuthenticationError(ModelError):
    """The provider rejected the key (401, 403)."""

    stops_run = True


class BalanceError(ModelError):
    """The provider's account has no balance left (402)."""

    stops_run = True


class UnreachableError(ModelError):
    """The server did not respond."""

    stops_run = True


class LostConnectionError(UnreachableError):
    """The connection broke after the call was sent, and again on every retry."""


class UnknownModelError(ModelError):
    """The server does not know the model (404), or a file is no model."""

    stops_run = True


class RefusedError(ModelError):
    """The server rejected the request."""


class BusyError(RefusedError):
    """The server is too busy, or failed (408, 409, 429, 5xx); `retry_after` is the pause that it requests, in s."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TransientError(RefusedError):
    """The server's reply was late or unreadable, even when the call was repeated."""


class ContextWindowError(ModelError):
    """The prompt is longer than the model's context window."""


class StructuredOutputError(ModelError):
    """Neither the reply nor the retry was the requested JSON."""


class WithheldError(StructuredOutputError):
    """The model refused, a filter stopped it, it only reasoned, or its reply was empty; the message says which."""


class BudgetError(MetaRagError):
    """A call was not made, to keep within a limit. `stop_reason` is shown in a trace."""

    exit_code = 1
    stop_reason: LimitReason = "budget"


class CostLimitError(BudgetError):
    """The call could cost more than is left under the cost limit."""

    stop_reason = "cost_limit"
    stops_run = True


class UnpricedModelError(BudgetError):
    """A cost limit is set, but the model has no known price."""

    exit_code = 2
    stop_reason = "cost_limit"
    stops_run = True


class DeadlineError(BudgetError):
    """There is no time left for the call."""

    stop_reason = "deadline"


class ExtensionError(MetaRagError):
    """The code of an extension raised an error of its own; the message names its file and line."""


class MissingExtraError(MetaRagError):
    """A library from an extra of the package is missing; the message says how to install it."""

    stops_run = True


class StorageError(MetaRagError):
    """A file cannot be written; earlier contents are kept."""

    exit_code = 1
    stops_run = True


class CorpusError(MetaRagError):
    """A corpus is missing, in use elsewhere, foreign, or built with other settings."""


class DamagedIndexError(CorpusError):
    """The files of an embedded index are damaged; it can be rebuilt from the catalogue."""


class RequestError(MetaRagError):
    """The service refuses a request; the message is shown to the client verbatim."""

    def __init__(self, status: int, code: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
