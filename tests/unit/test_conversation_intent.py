"""What a message wants: conservative rules, and answers without documents."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.answers import answer_without_documents, reply_phrase
from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.intent import QUESTION, Interpretation, read_intent
from meta_agent_rag.chat.words import conversation_words
from meta_agent_rag.text.names import words
from meta_agent_rag.text.words import stop_words
from tests.talk import history_of

SAMPLE = Path(__file__).parents[2] / "benchmarks" / "sample" / "questions.json"
QUESTIONS = [row["question"] for row in json.loads(SAMPLE.read_text(encoding="utf-8"))]
PLEASANT = sorted(" ".join(phrase) for each in conversation_words().pleasantries for phrase in each.phrases)
POLITE_WORDS = {word for text in PLEASANT for word in text.split()}
POLITE_WORDS |= {word for phrase in conversation_words().fillers for word in phrase}
CONTENT = sorted({word for text in QUESTIONS for word in words(text)} - POLITE_WORDS - set(stop_words()))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Thanks!", "thanks"),
        ("thank you so much for your help", "thanks"),
        ("That was great, thanks", "thanks"),
        ("ok, thanks, bye", "farewell"),
        ("Have a nice day!", "farewell"),
        ("HELLO?", "greeting"),
        ("Hi, how are you today?", "how_are_you"),
        ("Can I ask you something?", "may_i"),
        ("Sorry, my bad", "apology"),
        ("very good", "praise"),
        ("Cool, that helps", "praise"),
        ("\U0001f44d", "acknowledgement"),
        ("\U0001f64f\U0001f3fd !", "thanks"),
        ("\U0001f914", "emoji"),
        (":-)", "acknowledgement"),
        ("OK.", "acknowledgement"),
        ("that\u2019s all", "farewell"),
    ],
)
def test_pleasantries_are_recognised(message: str, kind: str) -> None:
    assert read_intent(message) == Interpretation(intent="pleasantry", kind=kind)


@pytest.mark.parametrize("phrase", PLEASANT)
def test_every_listed_pleasantry_is_recognised(phrase: str) -> None:
    assert read_intent(phrase).intent == "pleasantry"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("What have we discussed?", "discussed"),
        ("Thanks! So what have we talked about so far?", "discussed"),
        ("can you summarise our conversation, please", "discussed"),
        ("Where were we?", "discussed"),
        ("what was my last question?", "last_question"),
        ("What was my first question?", "first_question"),
        ("Repeat that, please.", "last_answer"),
        ("What did you just say?", "last_answer"),
        ("How many questions have I asked?", "count"),
        ("Who are you?", "capabilities"),
        ("help", "capabilities"),
    ],
)
def test_questions_about_the_conversation_are_recognised(message: str, kind: str) -> None:
    assert read_intent(message) == Interpretation(intent="conversation", kind=kind)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Write me a poem about the sea.", "request"),
        ("Hello! Could you write me a short poem?", "request"),
        ("please tell me a joke", "request"),
        ("Do my taxes", "request"),
        ("Can you do my taxes for me?", "request"),
        ("Book me a flight to Rome", "request"),
        ("What's the weather?", "live"),
        ("what\u2019s the weather like in Oslo today?", "live"),
        ("What time is it?", "live"),
    ],
)
def test_off_topic_requests_are_recognised(message: str, kind: str) -> None:
    assert read_intent(message) == Interpretation(intent="off_topic", kind=kind)


@pytest.mark.parametrize(
    "message",
    [
        *QUESTIONS,
        "Thanks, and who designed it?",
        "Good Morning, Midnight",
        "was it good",
        "Sure?",
        "Why?",
        "tell me more",
        "Who wrote me a poem?",
        "Which poem did he write about the weather?",
        "Write me a poem about the tower and say who built it.",
        "Write me a poem. When was the tower built?",
        "Write a summary of chapter two.",
        "What is the weather on Mount Fuji in winter?",
        "What is the date?",
        "Call the Midwife",
        "What did you say about the Kelm?",
        "What did we discuss about Mira Holt?",
        "What did the council discuss?",
        "help me understand the treaty",
        "",
        "\U0001f4c41?",
        "thanks " * 300,
        "thanks" + " " * 3000 + "who built the tower?",
    ],
)
def test_everything_else_is_a_question_for_the_documents(message: str) -> None:
    assert read_intent(message) == QUESTION


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_any_text_has_an_intent(message: str) -> None:
    reading = read_intent(message)
    assert (reading.kind == "") == (reading.intent == "question")


@given(st.data())
def test_a_message_with_content_words_is_not_a_pleasantry(data: st.DataObject) -> None:
    pleasant = data.draw(st.lists(st.sampled_from(PLEASANT), max_size=4))
    content = data.draw(st.lists(st.sampled_from(CONTENT), min_size=1, max_size=4))
    message = " ".join(data.draw(st.permutations([*pleasant, *content])))
    assert read_intent(message).intent != "pleasantry"


@given(st.sampled_from(QUESTIONS), st.sampled_from(["Thanks! ", "Hello, ", "OK, and ", "Sorry, ", "Please tell me: "]))
def test_a_polite_question_is_a_question(question: str, courtesy: str) -> None:
    assert read_intent(courtesy + question) == QUESTION


def test_every_kind_has_a_phrase() -> None:
    known = conversation_words()
    kinds = {each.kind for each in known.pleasantries} | {kind for kind, _ in known.off_topic}
    kinds |= {kind for kind, _ in known.about_conversation}
    assert len(kinds) >= 12
    values = dict.fromkeys(("summary", "questions", "question", "answer", "count"), "x")
    for kind in kinds:
        assert "$" not in reply_phrase(kind, **values)


def about(kind: str, history: History) -> str:
    return answer_without_documents(Interpretation(intent="conversation", kind=kind), history)


def test_replies_about_the_conversation_come_from_the_history() -> None:
    history = history_of("In Oslo.", "In $Rome.", summary="They spoke of ships.")
    reported = about("discussed", history)
    for part in ("They spoke of ships.", "- Standalone 1?", "- Standalone 2?"):
        assert part in reported
    assert about("last_question", history) == "Your last question was: Question 2?"
    assert about("first_question", history) == "Your first question was: Question 1?"
    assert "In $Rome." in about("last_answer", history)
    assert "2" in about("count", history)


def test_forgotten_turns_are_not_invented() -> None:
    for kind in ("discussed", "last_question", "first_question", "last_answer"):
        assert about(kind, History()) == reply_phrase("nothing_discussed")
        assert about(kind, History(turns=3, dropped=3)) == reply_phrase("not_word_for_word")
    late = History(exchanges=history_of("a", "b").exchanges[1:], turns=2, dropped=1)
    assert about("first_question", late) == reply_phrase("not_word_for_word")
    assert "no longer remember: 1" in about("discussed", late)


@pytest.mark.parametrize(
    ("message", "kind", "reply"),
    [
        ("Vielen Dank!", "thanks", "Gern geschehen."),
        ("Danke, sehr gut!", "thanks", "Gern geschehen."),
        ("Merci beaucoup pour votre aide", "thanks", "Je vous en prie."),
        ("¡Muchas gracias!", "thanks", "De nada."),
        ("Grazie mille", "thanks", "Prego."),
        ("ありがとうございます。", "thanks", "どういたしまして。"),
        ("谢谢", "thanks", "不客气。"),
        ("Спасибо большое", "thanks", "Пожалуйста."),
        ("Au revoir", "farewell", "Au revoir."),
        ("Tack så mycket", "thanks", "Varsågod."),
        ("شكرا", "thanks", "عفوا."),
        ("धन्यवाद", "thanks", "आपका स्वागत है।"),
        ("kiitos", "thanks", "Ole hyvä."),
        ("Wie geht es Ihnen?", "how_are_you", "Danke, gut. Was möchten Sie aus den Dokumenten wissen?"),
    ],
)
def test_small_talk_is_recognised_in_other_languages(message: str, kind: str, reply: str) -> None:
    reading = read_intent(message)
    assert (reading.intent, reading.kind) == ("pleasantry", kind)
    assert answer_without_documents(reading, History()) == reply


@pytest.mark.parametrize(
    "message",
    [
        "Danke, und wer hat die Brücke gebaut?",
        "Merci. Qui a construit le pont ?",
        "¿Quién construyó el puente?",
        "谢谢 谁设计了图书馆?",
    ],
)
def test_a_question_in_another_language_is_a_question(message: str) -> None:
    assert read_intent(message) == QUESTION


REQUESTS: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parents[1] / "coaching" / "requests.yaml").read_text("utf-8")
)


@pytest.mark.parametrize("kind", ["list", "overview"])
def test_requests_for_the_documents_are_recognised(kind: str) -> None:
    read = {message: read_intent(message) for message in REQUESTS[kind]}
    missed = [message for message, one in read.items() if (one.intent, one.kind) != ("documents", kind)]
    assert len(missed) <= 0.15 * len(read), missed


def test_small_talk_in_unlisted_wordings_is_recognised_and_questions_are_not() -> None:
    missed = [message for message in REQUESTS["pleasantry"] if read_intent(message).intent != "pleasantry"]
    assert len(missed) <= 0.3 * len(REQUESTS["pleasantry"]), missed
    assert [message for message in REQUESTS["question"] if read_intent(message) != QUESTION] == []


def test_an_overview_is_of_all_documents_or_of_those_named() -> None:
    assert read_intent("Give me an overview of all documents").every
    assert not read_intent("Fasse @tide zusammen").every


@pytest.mark.parametrize(
    "message",
    [
        "What is in the library?",
        "What is in the collection?",
        "What is in the index?",
        "How many books are there?",
        "What are the sources?",
        "List the sources",
        "Which articles exist?",
        "Which materials are available?",
        "How many reports were uploaded?",
        "Summarise the collection",
        "What about?",
        "Welche Quellen gibt es?",
        "Fasse die Sammlung zusammen",
        "Quelles sources sont disponibles ?",
        "¿Qué fuentes hay?",
        "Quali fonti ci sono?",
        "Quais textos existem?",
        "Welke bronnen zijn er?",
        "Vilka källor finns?",
        "Ile jest źródeł?",
        "Какие источники есть?",
        "どんな文献がありますか",
        "有哪些文献",
        "어떤 자료가 있나요?",
        "De quoi parle-t-il ?",
    ],
)
def test_a_question_about_books_sources_or_a_library_is_one_for_the_documents(message: str) -> None:
    assert read_intent(message) == QUESTION


@pytest.mark.parametrize(
    "message",
    [
        "List the documents",
        "Which documents are there?",
        "How many books do you have?",
        "Which reports have I uploaded?",
        "What are your sources?",
        "What is in your library?",
        "Welche Quellen hast du?",
        "Quelles sources as-tu ?",
        "¿Qué fuentes tienes?",
        "你有哪些资料",
        "Назови свои источники",
    ],
)
def test_what_the_program_has_is_a_list_of_documents(message: str) -> None:
    assert read_intent(message).kind == "list"


@pytest.mark.parametrize(
    "message",
    [
        "Summarise this document",
        "Summarise the document",
        "Give me a summary of my document",
        "Fasse dieses Dokument zusammen",
        "Résume le pdf",
        "Sammanfatta detta dokument",
        "Tiivistä tämä asiakirja",
        "Bu belgeyi özetle",
        "Перескажи этот документ",
        "この文書を要約してください",
        "文書を要約して",
        "总结这个文件",
        "总结我的文件",
        "이 문서를 요약해 줘",
        "لخص هذه الوثيقة",
        "इस दस्तावेज़ का सारांश दो",
    ],
)
def test_a_single_document_never_means_all(message: str) -> None:
    assert (read_intent(message).kind, read_intent(message).every) == ("overview", False)


@pytest.mark.parametrize(
    "message", ["Summarise all documents", "Summarise these files", "すべての文書を要約してください", "总结所有文件"]
)
def test_several_documents_mean_all(message: str) -> None:
    assert (read_intent(message).kind, read_intent(message).every) == ("overview", True)
