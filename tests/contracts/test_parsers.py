"""The contract of every parser, and how each handles its format."""

import io

import docx
import pytest
from docx.oxml.ns import qn
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.ingestion.document import Document, Refused
from meta_agent_rag.ingestion.parsers import File, Parser, discover_parsers, read_document
from meta_agent_rag.ingestion.parsers.pdf import Line, texts_of
from meta_agent_rag.ingestion.text import clean
from tests.files import OFFICE, archive, pdf, word, word_archive

PARSERS = discover_parsers()
GOOD = OFFICE | {
    "pdf": ("a.pdf", pdf([["The Danube flows through ten countries."]])),
    "docx": ("a.docx", word()),
    "html": ("a.html", b"<html><body><p>The Danube flows through ten countries.</p></body></html>"),
    "markdown": ("a.md", b"# Rivers\n\nThe Danube flows through ten countries.\n"),
    "text": ("a.txt", b"The Danube flows through ten countries."),
}
HIDDEN = "\u202e\u200b\u2060\u00ad\U000e0041"


def read(name: str, content: bytes) -> Document:
    return read_document(File(name=name, content=content))


def refusal(name: str, content: bytes) -> str:
    with pytest.raises(Refused) as raised:
        read(name, content)
    assert raised.value.reason
    return raised.value.kind


def blocks(document: Document) -> list[tuple[str, str | None]]:
    return [(block.text, block.section) for block in document.blocks]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.kind)
def test_a_parser_reads_each_of_its_formats(parser: Parser) -> None:
    examples = {name: content for name, content in GOOD.values() if name.endswith(parser.suffixes)}
    if parser.example:
        examples[f"a{parser.suffixes[0]}"] = parser.example
    assert examples, "a new parser: give it an `example`"
    for name, content in examples.items():
        first = next(one for one in PARSERS if one.recognises(File(name=name, content=content)))
        assert first is parser, f"{first.kind} recognises {name} too: change the `priority` of one, or `recognises`"
        assert read(name, content).title, "give the document a title; the file's name will do"


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_a_format_is_recognised_under_any_file_name(kind: str) -> None:
    name, content = GOOD[kind]
    document = read(name, content)
    assert document.kind == kind
    assert "ten countries" in document.text
    # Markdown is plain text, so only its name identifies it
    assert read("picture.jpg" if kind != "markdown" else "A.MARKDOWN", content).kind == kind


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_a_parser_raises_nothing_but_refusals(kind: str) -> None:
    name, content = GOOD[kind]
    for cut in range(1, len(content), max(1, len(content) // 40)):
        for damaged in (content[:cut], content[:cut] + b"\xff\x00<" + content[cut + 3 :]):
            try:
                document = read(name, damaged)
            except Refused:
                continue
            assert "\0" not in document.text


# -- type and text


def test_the_type_is_detected_from_content() -> None:
    assert refusal("a.pdf", b"MZ\x90\0" + bytes(4096)) == "type"
    assert refusal("a.txt", bytes(range(256)) * 20) == "type"
    assert refusal("a.docx", archive({"good.txt": b"x", "../../evil.txt": b"y"})) == "type"
    assert read("a.txt", b"<!DOCTYPE html><html><body>Hello there</body></html>").kind == "html"
    assert read("a.html", b"Plain words without markup").kind == "html"
    assert read("a.txt", b"%PDF- is how a PDF begins? Not this line, it is in the middle: %PDF-1.4"[5:]).kind == "text"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b""),
        ("a.txt", b" \n\t \n"),
        ("a.pdf", pdf([[]])),
        ("a.html", b"<html><script>alert(1)</script></html>"),
        ("a.docx", word_archive("<w:p/>")),
    ],
)
def test_a_file_without_text_is_rejected_with_that_reason(name: str, content: bytes) -> None:
    assert refusal(name, content) == ("no_text" if content else "empty")


@pytest.mark.parametrize("kind", ["html", "markdown", "text"])
def test_invisible_characters_are_removed_from_every_format(kind: str) -> None:
    name, content = GOOD[kind]
    document = read(name, content.decode().replace("Danube", f"Dan{HIDDEN}ube").encode())
    assert "Danube" in document.text
    assert not set(HIDDEN) & set(document.text + document.title)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_is_decoded_in_its_own_encoding(encoding: str) -> None:
    text = "Die Donau fließt durch zehn Länder."
    assert read("a.txt", text.encode(encoding)).text == text


def test_damaged_and_foreign_text_is_decoded_without_nul() -> None:
    assert read("a.txt", "Länder und Flüsse".encode() + b" \xff und Meere").text == "Länder und Flüsse \ufffd und Meere"
    assert read("a.txt", "Länder".encode("cp1252")).text == "Länder"
    russian = "Отчёт о работе насоса за прошлый год. Насос подаёт сорок литров в минуту."  # noqa: RUF001
    assert read("a.txt", russian.encode("cp1251")).text == russian
    assert read("a.txt", b"The pump\0 delivers\x01 water.\0\0").text == "The pump delivers water."
    assert read("a.txt", b"one\0two " * 1 + b"three words " * 50).text.startswith("onetwo")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Le musée est fermé à l'été. Les élèves très doués ont été reçus à l'école."),
        ("cp1252", "Però lunedì andrò in città perché è più bello così."),
        ("cp1252", "A canção não é difícil e às vezes você a ouve em São João."),
        ("cp1250", "Zażółć gęślą jaźń, święty łoś żółw źdźbło ćma ósmy."),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy při řece."),
    ],
)
def test_accents_of_eight_bit_texts_are_read_by_their_language(encoding: str, text: str) -> None:
    assert read("a.txt", (text * 3).encode(encoding)).text == text * 3


def test_numbers_rows_and_patterns_keep_their_form() -> None:
    assert read("a.html", b"<p>10<sup>6</sup> cells</p>").text == "10^6 cells"
    assert read("a.md", b"Use re.sub('[^a-z]', it) here[^1].\n\n[^1]: A note.").text.startswith(
        "Use re.sub('[^a-z]', it) here"
    )
    rows = "2026-01-01 a line of a log file that is rather long\n2026-01-02 a line of a log file that is rather long"
    assert read("a.log", rows.encode()).text == rows
    raised = (
        '<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r></w:p>'
    )
    assert read("a.docx", word_archive(raised)).text == "10^6"
    m = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    half, power = "<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", "<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>"
    for shape, said in ((half, "1/2"), (power, "1^2")):
        maths = shape.format(*(f"<m:r><m:t>{digit}</m:t></m:r>" for digit in "12"))
        document = read("a.docx", word_archive(f"<w:p><w:r><w:t>So </w:t></w:r><m:oMath {m}>{maths}</m:oMath></w:p>"))
        assert document.text == f"So {said}"


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("ig\u200bno\u200dre \u202eall\u202c\ufeff", "ignore all"),
        ("a\0b\x07c\x9fd", "abcd"),
        ("one\r\ntwo\rthree\u2028four\x85five\x0csix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("tab\tstays", "tab\tstays"),
        ("half \ud800 of a pair", "half \ufffd of a pair"),
        ("\U000e0041\U000e0042tagged", "tagged"),
        ("v\ufe0fs\U000e0100", "vs"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("naïve 東京 🦆", "naïve 東京 🦆"),
    ],
)
def test_only_visible_text_remains(raw: str, seen: str) -> None:
    assert clean(raw) == seen


@given(st.binary(max_size=400))
def test_any_bytes_are_either_decoded_or_rejected(content: bytes) -> None:
    try:
        document = read("a.txt", content)
    except Refused:
        return
    assert "\0" not in document.text
    document.text.encode("utf-8")


# -- PDF


def test_pdf_keeps_pages_outline_and_title() -> None:
    document = read(
        "a.pdf", pdf([["One."], ["Two."], ["Three."]], title="On Rivers", outline={"Source": 0, "Delta": 2})
    )
    assert (document.title, document.pages) == ("On Rivers", 3)
    assert [(block.text, block.page, block.section) for block in document.blocks] == [
        ("One.", 1, "Source"), ("Two.", 2, "Source"), ("Three.", 3, "Delta"),
    ]  # fmt: skip


def test_pdf_joins_hyphenated_words_and_separates_paragraphs() -> None:
    lines = [
        "The Danube is the second longest river of Eu-",
        "rope.",
        "It flows through ten countries to the Black Sea.",
    ]
    assert [block.text for block in read("a.pdf", pdf([lines])).blocks] == [
        "The Danube is the second longest river of Europe.",
        "It flows through ten countries to the Black Sea.",
    ]


def test_pdf_with_a_password_is_rejected_unless_the_password_is_empty() -> None:
    assert refusal("a.pdf", pdf([["Secret."]], password="open sesame")) == "encrypted"
    assert read("a.pdf", pdf([["Not secret."]], password="")).text == "Not secret."


def test_image_only_pdf_is_rejected_and_an_image_only_page_skipped() -> None:
    drawing = ["x" * 60] * 40_000
    assert refusal("a.pdf", pdf([drawing])) == "limit"
    document = read("a.pdf", pdf([["Words."], drawing]))
    assert document.text == "Words."
    assert "page 2" in document.notes[0]


@pytest.mark.parametrize("stated", ["10811.exe", "Contents", "Microsoft Word - draft.doc", "untitled", None])
def test_a_pdf_without_a_usable_title_has_that_of_its_first_line(stated: str | None) -> None:
    document = read("a.pdf", pdf([["Grippers and springs", "Springs give way."]], title=stated))
    assert document.title == "Grippers and springs"


def test_every_outline_entry_of_a_pdf_page_begins_a_section() -> None:
    lines = ["1 Springs", "Springs give way under load.", "2 Motors", "Motors need a control loop."]
    assert blocks(read("a.pdf", pdf([lines], outline={"Springs": 0, "Motors": 0}))) == [
        ("1 Springs Springs give way under load.", "Springs"),
        ("2 Motors Motors need a control loop.", "Motors"),
    ]


def test_contents_and_letters_printed_twice_are_repaired_in_a_pdf() -> None:
    lines = ["EENNFFOORRCCEEDD RRUULLEESS", "Springs . . . . . . . . 3", "Motors ........... 14", "(cid:2)The rules."]
    document = read("a.pdf", pdf([[line.replace("(", "\\(").replace(")", "\\)") for line in lines]]))
    assert document.text == "ENFORCED RULES The rules."
    assert read("a.pdf", pdf([["A budget of 550000 euros for 110000 people."]])).text.count("0000") == 2


def test_lines_of_code_and_of_japanese_keep_their_form() -> None:
    code = [Line(text="for x in y:", code=True, left=40), Line(text="print(x)", code=True, left=44)]
    assert list(texts_of([Line(text="Run this:"), *code])) == ["Run this:", "for x in y:\n    print(x)"]
    assert list(texts_of([Line(text="荷重は最大で4.5トン"), Line(text="です。")])) == ["荷重は最大で4.5トンです。"]


# -- DOCX


def test_docx_reads_rows_and_cells_inside_content_controls() -> None:
    def cell(text: str) -> str:
        return f"<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    def held(inner: str) -> str:
        return f"<w:sdt><w:sdtContent>{inner}</w:sdtContent></w:sdt>"

    nested = f"<w:tc><w:tbl><w:tr>{cell('inner')}</w:tr></w:tbl><w:p/></w:tc>"
    rows = (
        f"<w:tr>{cell('Limit')}{held(cell('4711 EUR'))}</w:tr>",
        held(f"<w:tr>{cell('Term')}{nested}</w:tr>"),
        f"<w:tr>{cell('Town')}{cell('Oslo')}</w:tr>",
    )
    document = read("a.docx", word_archive(f"<w:tbl>{''.join(rows)}</w:tbl>"))
    reported = [line.split(" | ") for line in document.text.splitlines()]
    assert reported == [["Limit", "4711 EUR"], ["Term", "inner"], ["Town", "Oslo"]]


def test_docx_keeps_list_numbers_and_footnotes() -> None:
    document, stream = docx.Document(), io.BytesIO()
    for text in ("Open the valve.", "Close it."):
        document.add_paragraph(text, style="List Number")
    document.add_paragraph("A point.", style="List Bullet")
    document.save(stream)
    assert [text for text, _ in blocks(read("a.docx", stream.getvalue()))] == [
        "1. Open the valve.", "2. Close it.", "A point.",
    ]  # fmt: skip
    for shown in document.part.numbering_part.element.iter(qn("w:lvlText")):
        shown.set(qn("w:val"), "%1.%2")  # a level that the list does not have
    document.save(stream := io.BytesIO())
    assert blocks(read("a.docx", stream.getvalue()))[0][0] == "1. Open the valve."
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    text = '<w:footnote w:id="2"><w:p><w:r><w:t>At sea level.</w:t></w:r></w:p></w:footnote>'
    note = f"<w:footnotes {space}>{text}</w:footnotes>"
    marked = '<w:p><w:r><w:t>Water boils at 100 C.</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    content = word_archive(marked, parts={"word/footnotes.xml": (note, kind, relation)})
    assert read("a.docx", content).text == "Water boils at 100 C. (Note: At sea level.)"


def test_docx_zip_bombs_are_rejected_before_extraction() -> None:
    assert refusal("a.docx", word_archive("<w:p/>", extra={f"word/{n}.xml": b"" for n in range(10_001)})) == "limit"
    large = File(name="a.docx", content=word(), unpacked_bytes=1000)
    with pytest.raises(Refused, match="unpacks to more"):
        read_document(large)


def test_docx_external_entities_are_not_resolved() -> None:
    secret = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
    text = "<w:p><w:r><w:t>Read: &e;</w:t></w:r></w:p>"
    assert read("a.docx", word_archive(text, prologue=secret)).text == "Read:"
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "lol">{lol}]>'
    assert refusal("a.docx", word_archive("<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", prologue=bomb)) in {
        "no_text",
        "unreadable",
    }


def test_damaged_encrypted_or_legacy_docx_is_rejected() -> None:
    whole = word()
    assert refusal("a.docx", whole[: len(whole) // 2]) == "unreadable"
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100)
    assert refusal("a.docx", ole + "EncryptedPackage".encode("utf-16-le")) == "encrypted"
    assert refusal("a.docx", ole) == "type"
    assert (
        refusal("a.docx", word_archive("<w:tbl><w:tr><w:tc>" * 2000 + "</w:tc></w:tr></w:tbl>" * 2000)) == "unreadable"
    )


# -- HTML


def test_html_keeps_title_headings_and_tables_and_drops_the_rest() -> None:
    document = read(
        "a.html",
        b"""<html><head><title> On
        Rivers </title><style>p {color: red}</style></head><body><nav>Home</nav><h1>Rivers</h1>
        <p>The <b>Danube</b><br>flows.</p><script>alert(1)</script><template>no</template><!-- nor this -->
        <div>Loose words<p>and a paragraph</p>and more</div><p hidden>unseen</p><p style="display: none">unseen</p>
        <h2>Lengths</h2><table><tr><th>river</th><th>km</th></tr><tr><td>Danube</td><td><p>2850</p></td></tr></table>
        <ul><li>one</li><li>two</li></ul><pre>a
  b</pre></body></html>""",
    )
    assert document.title == "On Rivers"
    assert blocks(document) == [
        ("Rivers", "Rivers"), ("The Danube flows.", "Rivers"), ("Loose words", "Rivers"),
        ("and a paragraph", "Rivers"), ("and more", "Rivers"), ("Lengths", "Lengths"),
        ("river | km\nDanube | 2850", "Lengths"), ("one", "Lengths"), ("two", "Lengths"), ("a\n  b", "Lengths"),
    ]  # fmt: skip


def test_html_is_decoded_as_declared() -> None:
    page = "<html><head><meta charset='{}'></head><body><p>Привет, мир и реки</p></body></html>"
    for encoding in ("windows-1251", "utf-8", "koi8-r"):
        assert read("a.html", page.format(encoding).encode(encoding)).text == "Привет, мир и реки"
    assert read("a.html", page.format("utf-8").encode("utf-16")).text == "Привет, мир и реки"


# -- Markdown


def test_markdown_keeps_front_matter_headings_and_tables() -> None:
    document = read(
        "a.md",
        b"---\ntitle: On Rivers\naliases: [Streams, 2001]\nalias: Waters\n---\nBefore.\n\n# Danube\n\nIt *flows*\n"
        b"[far](http://x.y).\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSub\n---\n\n```\ncode  here\n```\n"
        b"<div><script>x</script>block</div>\n",
    )
    assert (document.title, document.aliases) == ("On Rivers", ("Streams", "2001", "Waters"))
    assert blocks(document) == [
        ("Before.", None), ("Danube", "Danube"), ("It flows far.", "Danube"), ("one", "Danube"), ("two", "Danube"),
        ("a | b\n1 | 2", "Danube"), ("Sub", "Sub"), ("code  here", "Sub"), ("block", "Sub"),
    ]  # fmt: skip


@pytest.mark.parametrize("front", ["title: [unclosed", "a: !!python/object/apply:os.system ['true']", "d: 2020-13-45"])
def test_malformed_or_unsafe_front_matter_is_treated_as_text(front: str) -> None:
    document = read("a.md", f"---\n{front}\n---\n\n# Danube\n\nWords.\n".encode())
    assert document.title == "Danube"
    assert "front matter" in document.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "# One\n\nWords.\n\n```\n---\na: b\n---\n```\n\n## Two\n\nMore.",
        "---\n\nWords between rules.\n\n---\n\nMore.",
        "---\n\nA rule, then words.",
        "Words.\n\n---\ntitle: no\n---\n\nMore.",
    ],
)
def test_horizontal_rules_and_code_are_not_mistaken_for_front_matter(text: str) -> None:
    read_text = read("a.md", text.encode()).text
    assert all(word in read_text for word in ("More.", "Words") if word in text)
    assert read("a.md", text.encode()).title != "no"
    assert "words" in read_text.lower()


def test_markdown_keeps_list_numbers_and_footnotes() -> None:
    text = "1. Open.\n2. Close.\n\nWater boils.[^a] Ice melts.\n\n[^a]: At-100-C.\n"
    assert [block for block, _ in blocks(read("a.md", text.encode()))] == [
        "1. Open.", "2. Close.", "Water boils. (note a) Ice melts.", "(Note a) At-100-C.",
    ]  # fmt: skip


def test_line_breaks_within_japanese_paragraphs_are_no_blanks() -> None:
    wrapped = "荷重は最大で\n4.5トンです。\n"
    assert read("a.md", wrapped.encode()).text == "荷重は最大で4.5トンです。"
    assert read("a.html", "<p>水は\n冷たい</p>".encode()).text == "水は冷たい"
    assert read("a.md", "水は\n冷たい".encode()).text == "水は冷たい"


# -- text


def test_text_separates_paragraphs_and_joins_wrapped_lines() -> None:
    wrapped = "The Danube is the second longest river of all of\nEurope, after the Volga which is longer by far.\n"
    document = read("notes.txt", f"On Rivers\n\n{wrapped}\n \nshort\nlines\n".encode())
    assert document.title == "On Rivers"
    assert [block.text for block in document.blocks] == [
        "On Rivers",
        "The Danube is the second longest river of all of Europe, after the Volga which is longer by far.",
        "short\nlines",
    ]
