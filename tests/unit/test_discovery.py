"""An error of an extension's own code names its file and line; other errors and cancellation pass through."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.derivation.derivation import Plan
from meta_agent_rag.agent.derivation.derive import look_up_facts
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.derivation.planning import fault_of
from meta_agent_rag.agent.derivation.reading import Reading
from meta_agent_rag.agent.prompting import pack
from meta_agent_rag.agent.state import Signals
from meta_agent_rag.datasets import discover, load_questions
from meta_agent_rag.discovery import calling
from meta_agent_rag.errors import ExtensionError, InputError
from meta_agent_rag.settings import Settings


def broken(*given: object) -> Any:
    raise KeyError("value")


SAID = rf"failed in '{__file__}', line {broken.__code__.co_firstlineno + 1} \(KeyError: 'value'\)"
QUESTION, PLAN = discover_operators()["count"].examples[0]


async def derive() -> None:
    context: Any = SimpleNamespace(settings=Settings.load())
    reading = Reading(evidence=(), packed=pack((), 1))
    operators = {"count": replace(discover_operators()["count"], combine=broken)}
    await look_up_facts(context, "", Plan(operator="count", chains=()), reading, operators, round_=0)


def check() -> None:
    fault_of(PLAN, QUESTION, {"count": replace(discover_operators()["count"], check=broken)})


async def test_a_broken_extension_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match=f"The operator 'count' {SAID}") as raised:
        await derive()
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(ExtensionError, match=f"The operator 'count' {SAID}"):
        check()
    deficits = discover_deficits()
    own = replace(deficits, deficits=tuple(replace(one, heuristic=broken) for one in deficits))
    with pytest.raises(ExtensionError, match=SAID):
        own.guess(Signals(similarity=None, agreement=None, verbatim=None, abstained=False, evidence_passages=0))
    hotpotqa = discover()["hotpotqa"]
    (tmp_path / "rows.json").write_text(json.dumps([hotpotqa.example]))
    with pytest.raises(ExtensionError, match=f"The data set 'hotpotqa' {SAID}"):
        load_questions("own", data_file=tmp_path / "rows.json", registry={"own": replace(hotpotqa, parse=broken)})


@pytest.mark.parametrize("error", [InputError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_errors_of_the_package_and_cancellation_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, calling("method", "m", broken):
        raise error
    assert raised.value is error
