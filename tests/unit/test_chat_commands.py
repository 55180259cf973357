"""The slash commands of `marag chat`, and how sources and answers are displayed."""

import io
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer, get_ident
from types import SimpleNamespace

import pytest

from meta_agent_rag.chat.session import open_chat
from meta_agent_rag.chat.store import Said
from meta_agent_rag.chat.transcript import as_markdown
from meta_agent_rag.cli.shared.display import Screen
from meta_agent_rag.cli.shared.shell import Shell, converse, run_command
from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.grounding.citations import Citation, Scores
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.talk import history_of

FIXED = ("LLM_PROVIDER=deepseek", "DEEPSEEK_API_KEY=none", "ENCODER=hash-64", "MONITOR_ENCODER=hash-64")
PLACE = Citation(
    doc_id="tides", passage_id="t", title="Tides", page=3, last_page=4, section="Spring", span=(10, 42), snippet="",
    scores=Scores(score=0.5),
)  # fmt: skip


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[Shell]:
    """A session over the sample corpus, with a free encoder and model."""
    settings = Settings.load([*FIXED, f"MARAG_DATA_DIR={folder}"])
    async with open_chat(settings, model=ScriptedModel({})) as talk:
        yield Shell(chat=talk, settings=settings, screen=Screen())


async def declined() -> str:
    """A user at a terminal says no."""
    return "n"


async def test_a_conversation_is_forgotten_only_if_the_user_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with shell(tmp_path) as talk:
        talk.chat.history = history_of("In Oslo.")
        talk.next_line = declined
        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
        await run_command(talk, "/reset")
        assert talk.chat.history.turns == 1
        await run_command(talk, "/reset --yes")
        assert talk.chat.history.is_empty
    assert "Forgotten: 1 question " in capsys.readouterr().out


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input is a terminal at which nothing is typed."""
    master, slave = os.openpty()
    with os.fdopen(slave) as typed, os.fdopen(master):
        monkeypatch.setattr("sys.stdin", typed)
        yield


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("terminal")
async def test_ctrl_c_discards_a_line_whichever_thread_receives_the_signal(tmp_path: Path) -> None:
    async with shell(tmp_path) as talk:
        pressed = Timer(0.2, lambda: signal.pthread_kill(get_ident(), signal.SIGINT))
        pressed.start()
        assert not await talk.confirmed("Delete it?")
        pressed.join()


@pytest.mark.parametrize(("provider", "times"), [("embedded", 1), ("deepseek", 0)])
async def test_the_packaged_model_is_announced_before_the_first_question(
    provider: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings.load([*FIXED, f"MARAG_DATA_DIR={tmp_path}", f"LLM_PROVIDER={provider}"])
    monkeypatch.setattr("meta_agent_rag.llm.opening._stand_in", lambda _: ScriptedModel({}))
    monkeypatch.setattr("sys.stdin", io.StringIO("Who designed the Pennant Bridge?\nWho built Stag Skerry Light?\n"))
    await converse(settings, corpus=None, session=None)
    shown = capsys.readouterr().out
    assert shown.count("not answered, ") == 2, shown
    assert shown.count("marag models get") == times
    assert shown.find("marag models get") < shown.find("not answered, ")


WRONG_LINES = {
    "/histroy": "did you mean /history",
    "/zzzz": "/help lists them",
    "/mode loud": "choose from: plain, teacher, coach",
    "/level 4": "choose from: 1, 2, 3",
    "/topic cookery": "no topic 'cookery'",
    "/save": "write /save FILE",
    "/save /nowhere/at/all.md": "cannot be written",
    "/save taken.md": "left unchanged",
}


async def test_errors_are_reported_in_one_sentence(tmp_path: Path) -> None:
    taken = tmp_path / "taken.md"
    taken.write_text("mine")
    async with shell(tmp_path) as talk:
        for line, said in WRONG_LINES.items():
            with pytest.raises(MetaRagError, match=said):
                await run_command(talk, line)
    assert taken.read_text() == "mine"


def test_control_characters_are_neither_saved_nor_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sources = [replace(PLACE, title="Ti\x1b[2Jdes", snippet="high\x07 water")]
    text = as_markdown("evening", "sea", [Said(question="Red?", answer="It is \x1b[31mred[/].")], sources)
    assert "\x1b" not in text
    assert "\x07" not in text
    screen = Screen()
    screen.line("\x1b]0;title\x07 [bold]as it is[/] :cat:")
    screen.note("\x9b2J")
    assert capsys.readouterr().out == "\\x1b]0;title\\x07 [bold]as it is[/] :cat:\n\\x9b2J\n"
