"""Documents of one's own: what is read, what is kept of it, and what a second run changes."""

from pathlib import Path

import pytest

from tests.acceptance.doors import Model, marag, pdf, printed, rows, word


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two documents."""
    made = tmp_path / "notes"
    made.mkdir()
    (made / "lava.txt").write_text("Lava is molten rock that reaches the surface of the earth.")
    (made / "clouds.md").write_text("# Clouds\n\nClouds are made of many small droplets of water.\n")
    return made


def ingested(folder: Path, *words: str) -> dict[str, int]:
    """The counts of an ingestion into the corpus `notes`."""
    counts: dict[str, int] = printed(marag("ingest", str(folder), "--corpus", "notes", *words, "--json"))["counts"]
    return counts


def found(question: str, *words: str, corpus: str = "library") -> list[dict[str, object]]:
    """The passages that a question is asked over."""
    told = printed(marag("ask", question, "--corpus", corpus, *words, "--json"))
    return [one["passage"] for one in told["evidence"]]


def test_pdf_docx_html_markdown_text_and_passage_lines_are_read() -> None:
    listed = printed(marag("corpora", "show", "library", "--json"))["documents"]
    assert {one["kind"] for one in listed} == {"pdf", "docx", "html", "markdown", "text", "passages"}


def test_a_corpus_lists_its_documents_with_title_type_pages_and_passages() -> None:
    shown = marag("corpora", "show", "library").stdout
    assert "Pumps (pdf, 2 pages, 1 passage, " in shown
    assert "Harbour rules (markdown, 1 passage, " in shown


def test_the_type_of_a_file_is_detected_from_its_content(folder: Path) -> None:
    (folder / "report.txt").write_bytes(pdf([["Basalt is cold lava."]]))
    ingested(folder)
    listed = printed(marag("documents", "list", "--corpus", "notes", "--json"))
    kinds = {
        Path(one["source"]).name: one["kind"] for one in (listed if isinstance(listed, list) else listed["documents"])
    }
    assert kinds["report.txt"] == "pdf"


def test_title_heading_page_and_character_span_are_kept(model: Model) -> None:
    (pump,) = (one for one in found("How much does the Arden pump deliver?") if one["title"] == "Pumps")
    assert pump["start_page"] == 1
    (harbour,) = (one for one in found("What does a mooring cost?") if one["title"] == "Harbour rules")
    assert harbour["section"]
    assert isinstance(harbour["span"], list)
    assert harbour["span"][0] < harbour["span"][1]


def test_tables_are_kept_as_text(model: Model) -> None:
    (table,) = (one for one in found("How many km has the Danube?") if "2850" in str(one["text"]))
    assert "Danube | 2850" in str(table["text"])


def test_front_matter_gives_the_title(model: Model) -> None:
    assert "Harbour rules" in {one["title"] for one in found("What does a mooring cost?")}


def test_passage_lines_are_never_chunked(model: Model, folder: Path) -> None:
    long = " ".join(f"The lighthouse keeper wrote line {number} of the log." for number in range(60))
    (folder / "log.jsonl").write_bytes(rows({"id": "log", "title": "Log", "text": long}))
    assert ingested(folder)["added"] == 3
    (log,) = found("Who wrote line 7 of the log?", "--document", "Log", corpus="notes")[:1]
    assert log["text"] == long


def test_a_second_run_adds_nothing(folder: Path) -> None:
    assert ingested(folder)["added"] == 2
    again = printed(marag("ingest", str(folder), "--corpus", "notes", "--json"))
    assert (again["counts"]["unchanged"], again["encoded"]) == (2, 0)


def test_a_changed_file_replaces_exactly_its_own_passages(model: Model, folder: Path) -> None:
    ingested(folder)
    (folder / "lava.txt").write_text("Lava cools to basalt when it meets the cold sea.")
    again = printed(marag("ingest", str(folder), "--corpus", "notes", "--json"))
    assert (again["counts"]["replaced"], again["counts"]["unchanged"]) == (1, 1)
    texts = [str(one["text"]) for one in found("What is lava?", corpus="notes")]
    assert any("cold sea" in text for text in texts)
    assert not any("molten" in text for text in texts)


def test_the_passages_of_a_removed_file_go_with_prune(folder: Path) -> None:
    ingested(folder)
    (folder / "lava.txt").unlink()
    assert ingested(folder)["gone"] == 1
    assert ingested(folder, "--prune")["pruned"] == 1
    assert "lava" not in marag("documents", "list", "--corpus", "notes").stdout


def test_one_broken_file_never_stops_the_others(folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\n" + bytes(400))
    (folder / "empty.txt").write_bytes(b"")
    done = marag("ingest", str(folder), "--corpus", "notes")
    assert done.exit_code == 1
    assert "2 added" in done.stdout
    assert "broken.pdf" in done.stdout
    assert "empty.txt" in done.stdout


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The secret of the lighthouse keeper is kept outside.")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    marag("ingest", str(folder), "--corpus", "notes")
    assert "secret" not in marag("documents", "list", "--corpus", "notes").stdout.replace("link.txt", "")
    assert len(printed(marag("corpora", "show", "notes", "--json"))["documents"]) == 2


def test_a_corpus_built_with_another_chunker_is_refused_with_the_command_that_rebuilds_it(folder: Path) -> None:
    ingested(folder)
    refused = marag("ingest", str(folder), "--corpus", "notes", "--set", "CHUNKER=sentence")
    assert refused.exit_code == 2
    assert "--corpus notes --rebuild" in refused.stderr


def test_dropping_a_corpus_asks_first(folder: Path) -> None:
    ingested(folder)
    assert marag("corpora", "drop", "notes", input="n\n").exit_code != 0
    assert "notes" in marag("corpora", "list").stdout
    assert marag("corpora", "drop", "notes", "--yes").exit_code == 0
    assert "notes" not in marag("corpora", "list").stdout


def test_a_document_is_listed_shown_and_dropped(folder: Path) -> None:
    ingested(folder)
    assert printed(marag("documents", "show", "lava", "--corpus", "notes", "--json"))["passages"] == 1
    assert marag("documents", "drop", "lava", "--corpus", "notes", "--yes").exit_code == 0
    assert "lava" not in marag("documents", "list", "--corpus", "notes").stdout
    assert (folder / "lava.txt").exists()


def test_a_question_can_be_limited_to_a_document(model: Model) -> None:
    titles = {one["title"] for one in found("What does it say?", "--document", "Pumps")}
    assert titles == {"Pumps"}
    assert {one["title"] for one in found("@Pumps What does it say?")} == {"Pumps"}


def test_an_unknown_path_is_refused_in_one_sentence() -> None:
    refused = marag("ingest", "nowhere", "--corpus", "notes")
    assert refused.exit_code == 2
    assert "nowhere" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_word_files_keep_their_headings(tmp_path: Path, model: Model) -> None:
    (tmp_path / "one.docx").write_bytes(word(title="Rivers"))
    marag("ingest", str(tmp_path / "one.docx"), "--corpus", "notes")
    assert "Rivers" in {one["section"] for one in found("Through how many countries?", corpus="notes")}


def test_an_interrupted_or_repeated_ingestion_leaves_the_readers_a_whole_corpus(data: Path, tmp_path: Path) -> None:
    before = printed(marag("corpora", "show", "library", "--json"))
    broken = tmp_path / "broken.docx"
    broken.write_bytes(b"PK\x03\x04 no archive")
    assert marag("ingest", str(broken), "--corpus", "library").exit_code == 1
    after = printed(marag("corpora", "show", "library", "--json"))
    assert after["documents"] == before["documents"]


def test_the_ledger_holds_no_text_of_a_key(model: Model, data: Path) -> None:
    found("What does a mooring cost?")
    written = [path for path in data.rglob("*.jsonl") if path.is_file()]
    assert all("sk-acceptance" not in path.read_text("utf-8", "replace") for path in written)
