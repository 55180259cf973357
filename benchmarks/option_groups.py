"""Commands whose options are grouped in dataclasses."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are dataclasses of options; typer sees each of their fields as an option."""
    groups = {
        name: kind for name, kind in get_type_hints(command).items() if isinstance(kind, type) and is_dataclass(kind)
    }
    own = [one for one in inspect.signature(command).parameters.values() if one.name not in groups]
    options = [option for kind in groups.values() for option in _parameters(kind)]

    @wraps(command)
    def called(**values: Any) -> None:
        taken = {
            name: kind(**{one.name: values.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()
        }
        command(**values, **taken)

    vars(called)["__signature__"] = inspect.Signature([*own, *options])
    return called


def _parameters(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(kind)
    ]
