"""Normalising, quotes and abstentions."""

from importlib.resources import files

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.abstention import is_abstention, states_unknown
from meta_agent_rag.grounding.quotes import is_verbatim, verbatim_share
from meta_agent_rag.text.normalise import as_quoted, normalised, tokens

TEXT = (
    "Mira Holt \u201ccalled it\u201d a film\u2019s\u00a0film, 1912\u20131920.\n  She was  born in Oslo. "
    "The U.S. came later."
)


@given(st.text(max_size=40))
def test_normalised_text_is_idempotent_and_plain(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert once == once.lower()
    assert once == " ".join(once.split())
    assert all(character.isalnum() or character in "_ " for character in once)
    assert tokens(text) == frozenset(once.split())


@given(st.text(max_size=40))
def test_as_quoted_is_idempotent_and_keeps_words(text: str) -> None:
    once = as_quoted(text)
    assert as_quoted(once) == once
    assert once == " ".join(once.split())


@pytest.mark.parametrize(
    "quote",
    [
        "She was born in Oslo.",
        "She was born in Oslo",
        "She was born in\n\tOslo .",
        '"She was born in Oslo."',
        "\u201cShe was born in Oslo\u201d.",
        'Mira Holt "called it" a film\'s film, 1912-1920.',
        "Mira Holt \u201ccalled it\u201d a film\u2019s film, 1912\u20141920",
        "called it.",
        "born in Oslo. The U.S.",
        "film, 1912-1920. She was born",
    ],
)
def test_a_quote_with_other_punctuation_marks_is_verbatim(quote: str) -> None:
    assert is_verbatim(quote, ["Another text.", TEXT])


@pytest.mark.parametrize(
    "quote",
    [
        "She was born in Paris.",
        "she was born in oslo",
        "She was, born in Oslo",
        "born Oslo",
        "",
        " ",
        ".",
        "...",
        '"."',
    ],
)
def test_other_texts_are_not_verbatim(quote: str) -> None:
    assert not is_verbatim(quote, ["Another text.", TEXT])


@given(text=st.text(alphabet="abc \n.\u2019\u2013", min_size=1, max_size=60), data=st.data())
def test_every_part_of_a_text_is_verbatim(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    assert is_verbatim(part, [text]) == bool(part.strip(" .\n"))


@pytest.mark.parametrize(
    ("quotes", "share"),
    [([], None), (["born in Oslo"], 1.0), (["born in Oslo", "in Rome"], 0.5), (["..."], 0.0), (["", "in Rome"], 0.0)],
)
def test_the_share_of_verbatim_quotes(quotes: list[str], share: float | None) -> None:
    assert verbatim_share(quotes, [TEXT]) == share


@pytest.mark.parametrize(
    "sentence",
    [
        "The date of the reopening has not yet been decided.",
        "Whether the bath keeps its temperature is unknown.",
        "The winner is to be announced in May.",
        "Wer die Quelle gefasst hat, ist nicht bekannt.",
        "La date n'est pas encore fixée.",
        "Aún no se sabe quién lo pintó.",
        "L'autore è sconosciuto.",
        "De maker is niet bekend.",
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
        "not found guilty",
        "Unknown Pleasures",
        "The Unknown Soldier",
        "known",
        "no",
        "No.",
        "None of the Above",
        "Not Available Records",
        "Nara",
        "A",
        "The The",
        "0",
        "not given names",
    ],
)
def test_an_answer_is_not_an_abstention(answer: str) -> None:
    assert not is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Not stated in the passages.",
        "I could not find this in the documents.",
        "I couldn't find an answer.",
        "We found no information about the mill.",
        "I found nothing.",
        "There is no mention of the mill in the passages.",
        "No information is given.",
        "This cannot be determined from the provided documents.",
        "The passages do not say who built the mill.",
        "The provided context does not mention a price.",
        "There is no information about her mother in the text.",
        "None of the documents mentions it.",
        "This cannot be determined from the passages.",
        "It is not mentioned in the given documents.",
        "Das wird in den Dokumenten nicht erwähnt.",
        "Ich konnte das nicht finden.",
        "Je n'ai pas trouvé cette information.",
        "Los documentos no mencionan la fecha.",
        "文書には記載されていません。",
        "文中没有提到。",
    ],
)
def test_sentences_that_state_a_missing_answer_are_recognised(answer: str) -> None:
    assert is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "He was not found guilty.",
        "The passages do not say who built it, but it was built in 1731.",
        "No Country for Old Men",
        "The documents were burnt in 1731.",
        "Not Fade Away",
        "No evidence was found against him.",
        "Nothing but the sea.",
        "The text does not fade.",
        "No data centre was built in Oslo [1].",
        "We found no survivors [2].",
        "There was no answer from the crew [1].",
        "It could not be found in 1990 by the crew.",
    ],
)
def test_sentences_with_information_are_not_abstentions(answer: str) -> None:
    assert not is_abstention(answer)
