"""Operators and routes of installed packages are found beside the built-in ones."""

import sys
from pathlib import Path

import pytest

from meta_agent_rag.agent.derivation.operator import Operand, Outcome, discover_operators
from meta_agent_rag.agent.routes.route import discover_routes
from meta_agent_rag.errors import DuplicateNameError, InputError

CODE = """
from meta_agent_rag.agent.derivation.operator import Operator, Outcome, one_chain
from meta_agent_rag.agent.routes.vote import RouteAnswer
from meta_agent_rag.agent.routes.route import Route


async def run(context, given):
    return RouteAnswer(route="packaged_route", short_answer="Oslo")


shout = Operator(
    name="shout",
    when="the question asks for capitals",
    combine=lambda question, operands: Outcome(answer=operands[0].value.upper(), because="in capitals"),
    check=one_chain,
)
oslo = Route(name="packaged_route", about="says Oslo", run=run)
count = Operator(name="count", when="taken", combine=shout.combine, check=one_chain)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, entries: str) -> None:
    """A package as pip leaves it: a module, and its metadata with entry points."""
    (folder / f"{name}.py").write_text(CODE)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(folder))


def test_an_operator_and_a_route_of_a_package_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(discover_operators()), set(discover_routes())
    entries = "[meta_agent_rag.operators]\nx = packaged_one:shout\n\n[meta_agent_rag.routes]\ny = packaged_one:oslo\n"
    install(tmp_path, monkeypatch, "packaged_one", entries)
    operators, routes = discover_operators(), discover_routes()
    assert set(operators) - before[0] == {"shout"}
    assert set(routes) - before[1] == {"packaged_route"}
    outcome = operators["shout"].combine("", [Operand(of="", value="oslo")])
    assert outcome == Outcome(answer="OSLO", because="in capitals")


@pytest.mark.parametrize(
    ("group", "value", "said"),
    [
        ("operators", "oslo", "'packaged_two:oslo' .* is a Route, not an Operator; export one"),
        ("routes", "shout", "'packaged_two:shout' .* is an Operator, not a Route; export one"),
        ("operators", "nothing", "'packaged_two:nothing' .* fails"),
        ("operators", "count", "Two operators are called 'count'"),
    ],
)
def test_a_wrong_entry_point_is_named(
    group: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "packaged_two", f"[meta_agent_rag.{group}]\nx = packaged_two:{value}\n")
    monkeypatch.delitem(sys.modules, "packaged_two", raising=False)
    with pytest.raises((InputError, DuplicateNameError), match=said):
        {"operators": discover_operators, "routes": discover_routes}[group]()
