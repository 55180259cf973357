"""Invalid values of extensions are rejected in one sentence that names the value and the next action."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.methods import discover_methods
from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.routes.route import discover_routes
from meta_agent_rag.datasets import discover
from meta_agent_rag.errors import InputError

OPERATOR = discover_operators()["count"]
ROUTE = discover_routes()["plain_pass"]
DEFICIT = discover_deficits()["reasoning_error"]
DOORS: dict[str, tuple[Callable[[Path], object], str]] = {
    "OPERATORS_DIR": (discover_operators, "OPERATOR"),
    "ROUTES_DIR": (discover_routes, "ROUTE"),
    "DEFICITS_DIR": (discover_deficits, "DEFICIT"),
    "DATASETS_DIR": (discover, "DATASET"),
    "METHODS_DIR": (discover_methods, "METHOD"),
}


@pytest.mark.parametrize(
    ("entry", "values", "said"),
    [
        (OPERATOR, {"combine": 5}, "The operator 'count' has the 'combine' 5; give a function."),
        (OPERATOR, {"name": "Two Words"}, "The operator name 'Two Words' is not lower_case_with_underscores"),
        (
            ROUTE,
            {"name": "quoted_draft"},
            "The route name 'quoted_draft' is reserved, as are: derivation, quoted_draft",
        ),
        *(
            (ROUTE, {"weight": weight}, f"The route 'plain_pass' has the weight {weight!r}; give a number above 0.")
            for weight in ("a", 0, -1.0, True, float("nan"), float("inf"))
        ),
        (DEFICIT, {"detect": "a"}, "The deficit 'reasoning_error' has the 'detect' 'a'; give a function."),
        (discover()["sample"], {"parse": 1}, "The data set 'sample' has the 'parse' 1; give a function."),
        (discover_methods()["flare"], {"answer": 1}, "The method 'flare' has the 'answer' 1; give a function."),
    ],
)
def test_an_invalid_field_is_rejected(entry: Any, values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        replace(entry, **values)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("setting", DOORS)
class TestEveryFolder:
    """The same mechanism reads every folder with extensions of one's own."""

    def test_a_missing_folder_is_named_with_its_setting(self, setting: str, tmp_path: Path) -> None:
        found, constant = DOORS[setting]
        with pytest.raises(InputError) as raised:
            found(tmp_path / "nope")
        said = f"is not a folder; give a folder with *.py files that each export {constant}."
        assert str(raised.value) == f"{setting} {str(tmp_path / 'nope')!r} {said}"

    def test_a_file_that_exports_nothing_is_named(self, setting: str, tmp_path: Path) -> None:
        found, constant = DOORS[setting]
        (tmp_path / "_shared.py").write_text("1 / 0")
        found(tmp_path)
        (tmp_path / "mine.py").write_text(f"{constant.lower()} = 5\n")
        with pytest.raises(InputError, match=rf"mine\.py' does not export {constant}; write {constant} = \w+\("):
            found(tmp_path)
