"""Signals from comparing a draft with the second answer, and the policy over them."""

from pathlib import Path

import pytest

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.monitor import agreement_policy, policy
from meta_agent_rag.errors import UnknownNameError
from meta_agent_rag.grounding.short_answer import same_answer, without_disambiguation
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Oslo", "oslo.", True),
        ("Gatwick", "Gatwick Airport", True),
        ("1912", "12 May 1912", True),
        ("1.2 billion", "$1.2 billion", True),
        ("2 billion", "$1.2 billion", False),
        ("minus 5", "(\u22125)", True),
        ("3-2", "3:2", True),
        ("12.05.2001", "2001", True),
        ("5 million", "5", False),
        ("CBS", "NBC", False),
        ("Ann", "Annette", False),
        ("", "Oslo", False),
        ("no", "no", True),
        ("guilty", "not guilty", False),
        ("Paris", "Paris, not Lyon", True),
    ],
)
def test_agreement_compares_short_answers(one: str, other: str, agree: bool) -> None:
    assert same_answer(one, other) is agree
    assert same_answer(other, one) is agree


@pytest.mark.parametrize(
    ("short", "bare"),
    [
        ("Salt Road (film)", "Salt Road"),
        ("salt road (film)", "salt road"),
        ("125 lb (57 kg)", "125 lb (57 kg)"),
        ("Salt Road (song)", "Salt Road (song)"),
        ("(film)", "(film)"),
    ],
)
def test_the_disambiguation_of_a_title_is_stripped_from_an_answer(short: str, bare: str) -> None:
    assert without_disambiguation(short, ["Salt Road (film)", "125 lb", "(film)"]) == bare


async def test_an_unknown_policy_is_rejected_before_any_call(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"monitor policy 'gut_feeling'.*paper"):
        policy(settings_in(tmp_path, "MONITOR_POLICY=gut_feeling"))
    model = ScriptedModel({})
    with pytest.raises(UnknownNameError):
        async with open_engine(settings_in(tmp_path, "MONITOR_POLICY=gut_feeling"), model=model):
            pass
    assert policy(settings_in(tmp_path)) is agreement_policy
