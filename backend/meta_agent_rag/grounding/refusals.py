"""What is said in place of an answer that the documents do not bear out."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

import yaml

Reason: TypeAlias = Literal["no_evidence", "not_found", "invented_quotes", "leakage", "unsupported", "not_covered"]
"""Why an answer is not shown, in the order in which it is looked for."""

REASONS: tuple[Reason, ...] = get_args(Reason)


def refusal(reason: Reason) -> str:
    """The text of `refusals.yaml` for that reason."""
    return _texts()[reason]


@cache
def _texts() -> Mapping[str, str]:
    texts: Mapping[str, str] = yaml.safe_load(files(__package__).joinpath("refusals.yaml").read_text(encoding="utf-8"))
    return texts
