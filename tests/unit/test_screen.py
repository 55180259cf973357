"""Output that the terminal cannot encode."""

import json
import sys
from io import BytesIO, TextIOWrapper

import pytest

from meta_agent_rag.cli.shared.command import console, print_json, reporting, say


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
