"""What the terminal shows while an answer is being written, and output that it cannot encode."""

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from meta_agent_rag import Passage
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.cli.shared.command import console, print_json, reporting, say
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing.server import loopback_server, quoting

LIGHT = Passage(id="a", doc_id="a", title="Selwick Light", text="Selwick Light was designed by Orla Finnimore.")


async def test_a_draft_is_streamed_while_it_is_written(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    with loopback_server(quoting()) as server:
        settings = Settings.load(
            llm_provider="compatible",
            llm_base_url=server.base_url,
            flash_model="m",
            pro_model="m",
            marag_data_dir=tmp_path,
        )
        async with open_engine(settings) as engine:
            answer = await engine.answer(
                "Who designed Selwick Light?",
                evidence=[LIGHT],
                on_text=lambda request, text: seen.append((request.stage, text)),
            )
    drafts = [text for stage, text in seen if stage == "write"]
    assert len(drafts) > 3
    assert answer.rounds[0].draft.answer in drafts[-1]


def test_characters_that_the_output_cannot_encode_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(written, encoding="ascii"))

    @reporting
    def command() -> None:
        say("\u201cQu\xe9ll\u201d")
        console().print("\u2192")
        print_json({"mill": "Qu\xe9ll"})

    command()
    sys.stdout.flush()
    lines = written.getvalue().decode("ascii").splitlines()
    assert lines[:2] == [r"\u201cQu\xe9ll\u201d", r"\u2192"]
    assert json.loads("".join(lines[2:])) == {"mill": "Qu\xe9ll"}
