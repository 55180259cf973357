"""One exception tree; every message says what was wrong and what to do next.

MetaRagError
|-- InputError             what the caller gave is wrong
|   |-- SettingsError        a setting's name or value
|   |-- DataFileError        a data file, with its row and field
|   |-- UnknownNameError     no such data set, method, deficit, ...
|   |-- DuplicateNameError   two entries of one registry share a name
|   `-- PromptError          a prompt file or a value that it needs
|-- ModelError             a model did not serve a call
|   |-- AuthenticationError  401: the key is wrong                  (stops a run)
|   |-- BalanceError         402: the account is empty              (stops a run)
|   |-- UnreachableError     no answer from the server at all       (stops a run)
|   |   `-- LostConnectionError  the connection broke: the call may have been billed
|   |-- RefusedError         the server refused the request, or gave up retrying
|   |   `-- TransientError     it was late, or sent what cannot be read: worth another try
|   |-- ContextWindowError   the prompt is longer than the model reads
|   `-- StructuredOutputError  prose, or the wrong shape, where JSON was asked
|-- BudgetError            a call was not made, so as to keep a promise
|   |-- CostLimitError       it could cost more than is left
|   |-- UnpricedModelError   a cost limit is set and the model has no known price (stops a run)
|   `-- DeadlineError        there is no time left for it
|-- MissingExtraError      a library is missing that an extra of the package brings
|-- StorageError           a file cannot be written: disk full, no permission (stops a run)
|-- CorpusError            a corpus is missing, busy, foreign, or built otherwise
|   `-- SearchDownError      neither index of a corpus answers
`-- RequestError           the service refuses a request, with a status and a code
"""

from typing import Literal


class MetaRagError(Exception):
    """Base of everything that this package raises on purpose.

    `exit_code` is what a command returns for it: 2 where the remedy lies with what the caller
    gave (input, key, balance, server, model), 1 otherwise. `stops_run` is true where every
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
    """A name that no entry of a registry has."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        choice = f"choose from: {', '.join(sorted(known))}" if known else "none exist yet"
        super().__init__(f"There is no {kind} {name!r}; {choice}.")


class DuplicateNameError(InputError):
    """Two entries of one registry share a name."""


class PromptError(InputError):
    """A prompt file is malformed, or a value that it needs was not given."""


class ModelError(MetaRagError):
    """A model did not serve a call."""


class AuthenticationError(ModelError):
    """The provider refused the key (401, 403)."""

    stops_run = True


class BalanceError(ModelError):
    """The provider's account is exhausted (402)."""

    stops_run = True


class UnreachableError(ModelError):
    """The server did not answer at all."""

    stops_run = True


class LostConnectionError(UnreachableError):
    """The connection broke after the call was sent, and again on every retry."""


class RefusedError(ModelError):
    """The server refused the request, or kept failing until retries ran out."""


class TransientError(RefusedError):
    """The server was late, or sent what cannot be read; the call was tried again before this was raised."""


class ContextWindowError(ModelError):
    """The prompt is longer than the model's context window."""


class StructuredOutputError(ModelError):
    """The reply is not the JSON that was asked for, the re-asked one neither."""


class BudgetError(MetaRagError):
    """A call was not made, so as to keep a promise. `stop_reason` is what a trace shows."""

    exit_code = 1
    stop_reason: Literal["budget", "cost_limit", "deadline"] = "budget"


class CostLimitError(BudgetError):
    """The call could cost more than is left of the cost limit."""

    stop_reason = "cost_limit"
    stops_run = True


class UnpricedModelError(BudgetError):
    """A cost limit is set, and the model has no known price."""

    exit_code = 2
    stop_reason = "cost_limit"
    stops_run = True


class DeadlineError(BudgetError):
    """There is no time left for the call."""

    stop_reason = "deadline"


class MissingExtraError(MetaRagError):
    """A library is missing that an extra of the package brings; the message says how to install it."""

    stops_run = True


class StorageError(MetaRagError):
    """A file cannot be written; what was written before is kept."""

    exit_code = 1
    stops_run = True


class CorpusError(MetaRagError):
    """A corpus is missing, in use elsewhere, foreign, or built with other settings."""


class DamagedIndexError(CorpusError):
    """The files of an embedded index are not what its engine wrote; what the catalogue holds makes it again."""


class SearchDownError(CorpusError):
    """Neither index of a corpus answers a search."""


class RequestError(MetaRagError):
    """The service refuses a request; the message is shown to the client as it is. `param` names a field at fault."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.param = param
