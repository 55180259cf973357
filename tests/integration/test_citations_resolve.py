"""Every citation shown resolves to existing text: pages of a PDF, and sections of Word and Markdown files."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import docx
import pytest
from pypdf import PdfReader

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks
from meta_agent_rag.chat.session import GroundedAnswerer
from meta_agent_rag.grounding.citations import Citation
from meta_agent_rag.ingestion.parsers import File, read_document
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.corpus import read_documents
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.testing import ScriptedModel
from tests.files import pdf
from tests.loop import settings_in

CORPUS = "almanac"
PAGES = (
    ("The mill of Harrow stands on the river Tarn.", "Anna Roth built the mill in 1731 of grey stone."),
    ("The lock at Beck was dug by forty men in a single dry summer.", "Its gates were hung by Olaf Brenn in 1802."),
    ("The ferry at Crane Point crosses the strait in nine minutes.", "Sister Agathe Moor kept its bell for years."),
)
WORD = {
    "Orchards": "The orchards of Lindal bear a sour red apple. Peter Vane grafted the first tree in 1655.",
    "Beekeeping": "Bees winter in straw hives at Lindal. Clara Witt wrote the oldest manual of beekeeping there.",
}
MARKDOWN = {
    "Observatory": "The observatory on Mount Sill has a dome of copper. Its telescope was ground by Emil Haas in 1888.",
    "Weather station": "The weather station counts 212 days of fog a year. Ida Lund reads the gauges at dawn.",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question, the sentence that answers it, and the sentence's location."""

    question: str
    sentence: str
    file: str
    page: int | None
    section: str | None


ASKED = (
    Case(question="Who built the mill of Harrow?", sentence=PAGES[0][1], file="works.pdf", page=1, section="Mills"),
    Case(question="Who kept the bell of the ferry?", sentence=PAGES[2][1], file="works.pdf", page=3, section="Locks"),
    Case(
        question="Who wrote the oldest manual of beekeeping?",
        sentence="Clara Witt wrote the oldest manual of beekeeping there.",
        file="farms.docx", page=None, section="Beekeeping",
    ),
    Case(
        question="Who reads the gauges of the weather station?",
        sentence="Ida Lund reads the gauges at dawn.",
        file="sky.md", page=None, section="Weather station",
    ),
)  # fmt: skip


def write_files(folder: Path) -> None:
    folder.mkdir()
    (folder / "works.pdf").write_bytes(pdf(PAGES, title="Works on the Tarn", outline={"Mills": 0, "Locks": 1}))
    document = docx.Document()
    document.core_properties.title = "Farms of Lindal"
    for heading, text in WORD.items():
        document.add_heading(heading, level=1)
        document.add_paragraph(text)
    document.save(str(folder / "farms.docx"))
    sections = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in MARKDOWN.items())
    (folder / "sky.md").write_text(f"# The sky over Sill\n\n{sections}\n", encoding="utf-8")


def asked_by(prompt: str) -> Case:
    return next(one for one in ASKED if f"Question: {one.question}\n" in prompt)


def quoting(request: Request) -> dict[str, object]:
    """A writer that copies the sentence that answers the question and cites its location."""
    prompt = request.messages[1].content
    asked = asked_by(prompt)
    passages = re.findall(r'<passage n="(\d+)"[^>]*>(.*?)</passage>', prompt, re.DOTALL)
    plain = ((number, " ".join(html.unescape(text).split())) for number, text in passages)
    number = next(number for number, text in plain if asked.sentence in text)
    said = f"{asked.sentence.rstrip('.')} [{number}] [99]."
    return {"quotes": [asked.sentence], "answer": said, "short_answer": asked.sentence.split()[0], "confidence": 0.9}


def second_answer(request: Request) -> dict[str, object]:
    return {"steps": [], "short_answer": asked_by(request.messages[1].content).sentence.split()[0]}


def assert_in_place(citation: Citation, asked: Case, folder: Path, sources: dict[str, str]) -> None:
    """Check document, page, section, span and snippet against the file itself."""
    file = folder / asked.file
    assert Path(sources[citation.doc_id]) == file
    document = read_document(File(name=file.name, content=file.read_bytes()))
    assert citation.title == document.title
    assert citation.span is not None
    assert " ".join(document.text[slice(*citation.span)].split()) == asked.sentence.rstrip(".")
    assert citation.snippet in document.text
    assert citation.section is not None
    assert asked.section in citation.section.split("; ")
    held = [block for block in document.blocks if asked.sentence in " ".join(block.text.split())]
    assert [(block.page, block.section) for block in held] == [(asked.page, asked.section)]
    if asked.page is None:
        assert citation.pages is None
        return
    assert (citation.page, citation.last_page) == (asked.page, asked.page)
    shown = PdfReader(file).pages[asked.page - 1].extract_text()
    assert asked.sentence in " ".join(shown.split())


def rendered(style: str, citation: Citation) -> str:
    """The citation as shown to a reader, rebuilt from its parts."""
    if style == "title":
        return f"[{citation.name}]"
    if style == "page":
        return f"[{citation.name}, p.{citation.pages}]" if citation.pages else f"[{citation.name}]"
    page = f" (Page {citation.pages})" if citation.pages else ""
    place = citation.name if citation.section in {None, citation.name} else f"{citation.name}, {citation.section}"
    return f'[Source: {place}{page} - "{" ".join(citation.snippet.split())}"]'


@pytest.mark.slow
@pytest.mark.parametrize(("chunker", "styles"), [("characters", ("page", "source", "title")), ("sentence", ("page",))])
async def test_every_citation_resolves_to_its_source(tmp_path: Path, chunker: str, styles: Sequence[str]) -> None:
    folder = tmp_path / "files"
    write_files(folder)
    encoder = AsyncEncoder(HashEncoder())
    assignments = [f"ENCODER={encoder.name}", f"CHUNKER={chunker}", "CHUNK_CHARACTERS=120", "CHUNK_OVERLAP=20"]
    built = settings_in(tmp_path / "data", *assignments)
    report = await ingest(built, [folder], CORPUS, encoder=encoder)
    assert {outcome.status for outcome in report.outcomes} == {"added"}
    sources = {document.id: document.source for document in read_documents(tmp_path / "data", CORPUS)}
    for style in styles:
        settings = settings_in(tmp_path / "data", *assignments, f"CITATION_STYLE={style}", "RETRIEVAL_TOP_K=12")
        model = ScriptedModel({"write": quoting, "second_answer": second_answer})
        async with (
            open_retriever(settings, CORPUS, encoder=encoder) as retriever,
            open_engine(settings, model=model, monitor_encoder=encoder) as engine,
        ):
            asking = GroundedAnswerer(engine=engine, retriever=retriever, checks=Checks.of(settings))
            replies = [(one, (await asking(one.question, one.question)).grounded) for one in ASKED]
        for asked, reply in replies:
            assert reply.refused is None, (asked, reply.refused)
            (citation,) = reply.citations
            assert_in_place(citation, asked, folder, sources)
            assert reply.text == f"{asked.sentence.rstrip('.')} {rendered(style, citation)}."
            assert reply.removed == 1
            assert chunker != "characters" or (citation.section, citation.page) == (asked.section, asked.page)
