"""Quotes, abstentions, and phrases that refer to knowledge outside the documents."""

from importlib.resources import files

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.abstention import is_abstention, leaks, states_unknown
from meta_agent_rag.grounding.quotes import as_written, is_verbatim

TEXT = (
    "Mira Holt \u201ccalled it\u201d a film\u2019s\u00a0film, 1912\u20131920.\n  She was  born in Oslo. "
    "The U.S. came later."
)


@pytest.mark.parametrize(
    "quote",
    [
        "She was born in Oslo.",
        "She was born in Oslo",
        '"She was born in Oslo."',
        'Mira Holt "called it" a film\'s film, 1912-1920.',
        "Mira Holt \u201ccalled it\u201d a film\u2019s film, 1912\u20141920",
        "born in Oslo. The U.S.",
        "film, 1912-1920. She was born",
    ],
)
def test_a_quote_with_other_punctuation_marks_is_verbatim(quote: str) -> None:
    assert is_verbatim(quote, ["Another text.", TEXT])


@pytest.mark.parametrize(
    "quote", ["She was born in Paris.", "born Oslo", "rn in Oslo", "She was bor", "912-1920", "", ".", '"."']
)
def test_other_texts_are_not_verbatim(quote: str) -> None:
    assert not is_verbatim(quote, ["Another text.", TEXT])


@pytest.mark.parametrize(
    "sentence",
    [
        "The date of the reopening has not yet been decided.",
        "The winner is to be announced in May.",
        "Wer die Quelle gefasst hat, ist nicht bekannt.",
        "Aún no se sabe quién lo pintó.",
        "作者は不明である。",
        "具体日期尚未确定。",
    ],
)
def test_a_document_that_calls_something_unknown_is_recognised(sentence: str) -> None:
    assert states_unknown(["It opened in 1912.", sentence])


def test_listed_abstentions_are_recognised_in_any_case_or_quotes() -> None:
    listed = yaml.safe_load(files("meta_agent_rag.grounding").joinpath("abstention.yaml").read_text(encoding="utf-8"))
    assert len(listed) > 20
    for phrase in listed:
        for dressed in (str(phrase), str(phrase).upper(), f' "{phrase}." '):
            assert is_abstention(dressed), dressed


@pytest.mark.parametrize(
    "answer",
    [
        "Not stated in the passages.",
        "I could not find this in the documents.",
        "The passages do not say who built the mill.",
        "This cannot be determined from the passages.",
        "Das wird in den Dokumenten nicht erwähnt.",
        "Je n'ai pas trouvé cette information.",
        "Los documentos no mencionan la fecha.",
        "文書には記載されていません。",
        "文档中找不到这个信息。",
        "その情報は見つかりませんでした。",
    ],
)
def test_sentences_that_state_a_missing_answer_are_recognised(answer: str) -> None:
    assert is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "not found guilty",
        "Unknown Pleasures",
        "no",
        "0",
        "The passages do not say who built it, but it was built in 1731.",
        "No Country for Old Men",
        "Nothing but the sea.",
        "No data centre was built in Oslo [1].",
        "It could not be found in 1990 by the crew.",
        "他找不到工作\uff0c于是移民了。",
        "彼の遺体は見つかりませんでした。",
    ],
)
def test_sentences_with_information_are_not_abstentions(answer: str) -> None:
    assert not is_abstention(answer)


TIDE = (
    "Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt. Nobody says that she left the city. "
    "She won two prizes in 1912! Later she moved."
)


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("Later she moved.", ("Later she moved.",)),
        (f'<passage n="2" title="Low Tide">{TIDE}</passage>', (TIDE,)),
        ("Nobody says that she left the city. She sailed to Bergen with fourteen crates of film.", (
            "Nobody says that she left the city.",
        )),
        ("She sailed to Bergen with fourteen crates of film. It was never found again there.", ()),
        ("Later she moved. So he said.", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_the_verbatim_parts_of_a_quote_are_kept(quote: str, kept: tuple[str, ...]) -> None:
    assert as_written(quote, [f"Low Tide\n{TIDE}"], [TIDE]) == kept


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("She leaves (in\u00a0the\n  novel).", True),
        ("She leaves in the **novel**.", True),
        ("She leaves in the \u201cnovel\u201d.", True),
        ("She leaves in the no\u00advel.", True),
        ("IN THE NOVEL", True),
        ("in the novella", False),
        ("in the novel-writing trade", False),
        ("in the. novel", False),
        ("", False),
    ],
)
def test_whole_words_match_whatever_their_marks(answer: str, found: bool) -> None:
    assert leaks(answer, []) == (("in the novel",) if found else ())


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_phrase_of_a_verified_quote_is_the_documents(before: str, after: str) -> None:
    quote = f"{before} which in the novel burns {after}"
    assert leaks(quote, []) == ("in the novel",)
    assert leaks(quote, [quote]) == ()
