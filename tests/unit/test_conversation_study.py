"""What a study session stores, whatever interrupts a turn."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from meta_agent_rag.conversation.sessions import Sessions, Stored
from meta_agent_rag.conversation.study import open_study
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in

HASHED = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64")


@dataclass(frozen=True, kw_only=True)
class PausingSessions(Sessions):
    """Saves a conversation, and pauses after the first save."""

    begun: asyncio.Event

    async def save(self, name: str, stored: Stored) -> None:
        await super().save(name, stored)
        if not self.begun.is_set():
            self.begun.set()
            await asyncio.sleep(30)


async def test_a_turn_stopped_while_being_saved_is_forgotten_everywhere(tmp_path: Path) -> None:
    async with open_study(settings_in(tmp_path, *HASHED), transport=ScriptedModel({})) as study:
        begun = asyncio.Event()
        study.sessions = PausingSessions(path=study.sessions.path, begun=begun)
        turn = asyncio.ensure_future(study.reply("Who designed the Pennant Bridge?"))
        await begun.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert study.history.is_empty
        kept = await study.sessions.load(study.name)
    assert kept is not None
    assert kept.history.is_empty
