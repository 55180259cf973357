"""Why a file was not read."""

from typing import Literal, TypeAlias, get_args

RefusalKind: TypeAlias = Literal["empty", "unreadable", "encrypted", "no_text", "limit", "type"]
REFUSAL_KINDS: tuple[RefusalKind, ...] = get_args(RefusalKind)


class Refused(Exception):  # noqa: N818 # an outcome, which is caught and reported
    """A file is not taken. `kind` sorts the reasons; `reason` is a clause for the user, without a full stop."""

    def __init__(self, kind: RefusalKind, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind: RefusalKind = kind
        self.reason = reason
