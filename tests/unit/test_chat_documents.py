"""Questions about one document, saving a whole conversation, and named sessions."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from meta_agent_rag.agent.grounded import GroundedAnswer
from meta_agent_rag.asking import answer, grounded_answer
from meta_agent_rag.chat.session import ChatSession, DocumentsReply, Turn, open_chat
from meta_agent_rag.cli.main import app
from meta_agent_rag.cli.shared.display import Screen
from meta_agent_rag.cli.shared.shell import Shell, run_command
from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.corpus.naming import addressed, documents_named
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in

HASHED = ("ENCODER=hash-64", "MONITOR_ENCODER=hash-64", "CLAIM_CHECK=exact")
TIDES = "The spring tide at Quell reaches 9 metres."
WINDS = "The spring wind at Quell reaches 30 knots."


def document(title: str, source: str) -> DocumentRecord:
    return DocumentRecord(id=source, source=source, title=title, kind="text", content_hash="")


DOCUMENTS = (
    document("Tides of the North", "/notes/tides.md"),
    document("Winds", "/notes/north winds.v2.pdf"),
    document("Winds", "/notes/winds_old.txt"),
)


@pytest.mark.parametrize(
    ("name", "place"),
    [("tides", 0), ("TIDES.MD", 0), ("Tides of the North", 0), ("tides of", 0), ("north-winds", 1), ("winds old", 2)],
)
def test_documents_are_found_by_title_or_file_name(name: str, place: int) -> None:
    assert documents_named(DOCUMENTS, [name]) == {DOCUMENTS[place].id}


@pytest.mark.parametrize(
    ("message", "text", "found"),
    [
        ("@tides How high?", "How high?", {0}),
        ('How high, says @"Tides of the North"?', "How high, says ?", {0}),
        ("@tides @winds_old What reaches Quell?", "What reaches Quell?", {0, 2}),
        ("Write to a@tides.example, please", "Write to a@tides.example, please", set()),
        ("Who is @ home?", "Who is @ home?", set()),
        ("What does the @Override annotation do?", "What does the @Override annotation do?", set()),
        ("@tides What does  @Override do?", "What does @Override do?", {0}),
    ],
)
def test_documents_named_in_a_message_are_recognised(message: str, text: str, found: set[int]) -> None:
    assert addressed(message, DOCUMENTS) == (text, frozenset(DOCUMENTS[place].id for place in found))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("@tydes How high?", r"No document is named 'tydes'; did you mean 'tides\.md'\?"),
        ('@"Override" How high?', "No document is named 'Override'; choose from"),
        ("@winds How high?", "Several documents are named 'winds'"),
    ],
)
def test_a_misspelt_quoted_or_ambiguous_name_in_a_message_is_an_error(message: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        addressed(message, DOCUMENTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a corpus of two documents."""
    home, notes = tmp_path_factory.mktemp("coast"), tmp_path_factory.mktemp("notes")
    (notes / "tides.md").write_text(f"# Tides\n\n{TIDES}\n")
    (notes / "winds.md").write_text(f"# Winds\n\n{WINDS}\n")
    files = [str(notes / name) for name in ("tides.md", "winds.md")]
    chosen = ["--set", f"MARAG_DATA_DIR={home}", "--set", "ENCODER=hash-64"]
    done = CliRunner().invoke(app, ["ingest", *files, "--corpus", "coast", *chosen])
    assert done.exit_code == 0, done.output
    return home


async def talk(folder: Path, *messages: str, session: str) -> tuple[ChatSession, list[Turn]]:
    settings = settings_in(folder, *HASHED, f"MARAG_DATA_DIR={folder}")
    async with open_chat(settings, corpus="coast", session=session, model=ScriptedModel({})) as chat:
        turns = []
        for message in messages:
            turns.append(await chat.reply(message))
            await chat.settle()
        return chat, turns


def grounded(turn: Turn) -> GroundedAnswer:
    assert isinstance(turn.reply, DocumentsReply)
    return turn.reply.grounded


async def test_a_question_is_limited_to_the_documents_it_names(folder: Path) -> None:
    question = "What does the spring at Quell reach?"
    chat, turns = await talk(folder, question, f"@tides {question}", f"@winds {question}", session="limited")
    found = [{one.passage.title for one in grounded(turn).answer.evidence} for turn in turns]
    assert found == [{"Tides", "Winds"}, {"Tides"}, {"Winds"}]
    assert chat.history.exchanges[1].question == question
    with pytest.raises(InputError, match=r"No document is named 'tydes'; did you mean 'tides\.md'"):
        await talk(folder, f"@tydes {question}", session="limited")
    _, (plain,) = await talk(folder, "What is @Override about?", session="plain")
    grounded(plain)
    _, (listed,) = await talk(folder, "@winds Which documents do you have?", session="plain")
    assert ("winds.md" in listed.reply.text, "tides.md" in listed.reply.text) == (True, False)


async def test_an_open_conversation_lists_the_documents_of_a_rebuilt_corpus(tmp_path: Path) -> None:
    settings, encoder = settings_in(tmp_path, *HASHED), AsyncEncoder(HashEncoder(64))
    kept = Passage(id="p1", doc_id="/notes/winds.md", title="Winds", text=WINDS)
    await ensure_corpus(settings, "coast", [kept], encoder)
    async with open_chat(settings, corpus="coast", session="open", model=ScriptedModel({})) as chat:
        async with edit_corpus(settings, "coast", encoder, chunker="other", rebuild=True) as editor:
            await editor.put(document("Tides", "/notes/tides.md"), [replace(kept, doc_id="/notes/tides.md")])
        listed = await chat.reply("Which documents do you have?")
    assert ("tides.md" in listed.reply.text, "winds.md" in listed.reply.text) == (True, False)


async def test_a_question_in_python_names_documents_only_if_mentions_are_read(folder: Path) -> None:
    settings = settings_in(folder, *HASHED, f"MARAG_DATA_DIR={folder}")
    asked: Any = {"corpus": "coast", "settings": settings, "model": ScriptedModel({})}
    with pytest.raises(InputError, match=r"No document is named 'tides'; choose from: winds\.md"):
        await answer("@tides What is it?", documents=["winds"], mentions=True, **asked)
    with pytest.raises(InputError, match="The question is empty"):
        await answer("@tides", mentions=True, **asked)
    with pytest.raises(InputError, match="`documents` chooses among those of a corpus"):
        await answer("What is it?", evidence=[], documents=["winds"], **asked)
    unread = await grounded_answer("@waves What does the spring at Quell reach?", **asked)
    assert unread.question.startswith("@waves")


async def test_the_whole_conversation_is_saved_after_older_turns_were_folded(folder: Path, tmp_path: Path) -> None:
    questions = [f"How high is tide number {number} at Quell?" for number in range(9)]
    await talk(folder, *questions, session="forgetful")
    settings = settings_in(folder, *HASHED, f"MARAG_DATA_DIR={folder}")
    async with open_chat(settings, corpus="coast", session="forgetful", model=ScriptedModel({})) as again:
        shell = Shell(chat=again, settings=settings, screen=Screen())
        await run_command(shell, f"/save {tmp_path / 'saved.md'}")
        saved = (tmp_path / "saved.md").read_text()
        assert [f"## {turn}. {question}" in saved for turn, question in enumerate(questions, start=1)] == [True] * 9
        await run_command(shell, "/reset")
        assert await again.said() == ()


def sessions(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["sessions", *arguments, "--set", f"MARAG_DATA_DIR={folder}"])
    return done.exit_code, done.output


def test_a_session_is_renamed_to_a_free_name_and_deleted_once_confirmed(tmp_path: Path, folder: Path) -> None:
    assert sessions(tmp_path, "list") == (0, "No conversations yet; start one with `marag chat`.\n")
    for name in ("monday", "tuesday"):
        asyncio.run(talk(folder, "How high is the tide at Quell?", session=name))
    for words, said in (
        (("rename", "friday", "quell"), "There is no session 'friday'"),
        (("rename", "monday", "tuesday"), "A session 'tuesday' already exists"),
        (("rename", "monday", "a b"), "A session cannot be named 'a b'"),
        (("delete", "monday"), "needs confirmation; add --yes"),
        (("delete", "friday", "--yes"), "There is no session 'friday'"),
    ):
        code, output = sessions(folder, *words)
        assert (code, said in output) == (2, True), output
    assert "monday: coast, 1 question, " in sessions(folder, "list")[1]
