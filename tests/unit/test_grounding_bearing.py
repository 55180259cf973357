"""Whether supported claims answer the question asked."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.relevance import holds_the_answer, is_connected, on_the_question, speaks_of
from meta_agent_rag.grounding.support.statement import Statement, read
from meta_agent_rag.grounding.support.verdict import Support
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.text.sentences import sentences


def statements(text: str) -> list[Statement]:
    return [read(sentence.strip()) for sentence in sentences(text)]


YARDS_TEXT = "The Grey Petrel was built at Dunnaigh. The Star of Ithry was built at Vantry."
YARDS = statements(YARDS_TEXT)


@pytest.mark.parametrize(
    ("question", "source", "speaks"),
    [
        ("Were the Grey Petrel and the Star of Ithry built by the same yard?", YARDS_TEXT, True),
        ("Was the Grey Petrel built before the Titanic?", YARDS_TEXT, False),
        ("Whose is Ithry's oldest star, of 1912?", YARDS_TEXT, True),
        ("is the earth flat?", "A flat roof.", False),
        ("is the earth flat?", "The earth is not flat.", True),
        ("who swims?", "She swims.", True),
        ("who is it?", "", True),
    ],
)
def test_a_source_is_matched_to_the_subject_of_the_question(question: str, source: str, speaks: bool) -> None:
    assert speaks_of(question, statements(source)) is speaks


def judged(*supported: bool) -> Sequence[Support]:
    return [Support(score=0.9, passage_id="p", supported=each) for each in supported]


def test_a_claim_of_few_words_is_judged_together_with_its_question() -> None:
    stated = claims("Yes [1]. Eight [1]. The Grey Petrel was built at Dunnaigh [1].")
    known = on_the_question("Is the Grey Petrel eight years old?", stated, judged(True, True, True), YARDS)
    assert [found.supported for found in known] == [True, True, True]
    unknown = on_the_question("Has Paris eight rivers?", stated, judged(True, True, True), YARDS)
    assert [found.supported for found in unknown] == [False, False, True]
    refuted = on_the_question("Is the Grey Petrel old?", stated, judged(False, False, False), YARDS)
    assert not any(found.supported for found in refuted)


@pytest.mark.parametrize(
    ("short", "answer", "supported", "holds"),
    [
        ("Dunnaigh", "It was built at Dunnaigh [1]. It sank in Rome [1].", (True, False), True),
        ("Rome", "It was built at Dunnaigh [1]. It sank in Rome [1].", (True, False), False),
        ("Rome", "It was built at Dunnaigh [1].", (True,), False),
        ("at Vantry", "It was built there [1].", (True,), True),
        ("no", "No, it was built at Dunnaigh [1].", (True,), True),
        ("no", "It was built at Dunnaigh [1]. No [1].", (True, False), False),
        ("yes", "It was built at Dunnaigh [1].", (True,), False),
    ],
)
def test_the_short_answer_must_occur_in_a_supported_claim(
    short: str, answer: str, supported: tuple[bool, ...], holds: bool
) -> None:
    question = "Was the Grey Petrel built at Rome?"
    assert holds_the_answer(question, short, claims(answer), judged(*supported), YARDS) is holds


def test_a_yes_or_no_may_follow_from_other_claims() -> None:
    question = "Were the Grey Petrel and the Star of Ithry built by the same yard?"
    stated = claims("No, they are of different yards [1]. The Grey Petrel was built at Dunnaigh [1].")
    assert holds_the_answer(question, "no", stated, judged(False, True), YARDS)
    assert not holds_the_answer("Is Paris old?", "no", stated, judged(False, True), YARDS)


def passage(title: str, text: str, document: str = "") -> Passage:
    return Passage(id=title, doc_id=document or title, title=title, text=text)


PORT = (
    passage("Grey Petrel (ship)", "Ada Bode launched the Grey Petrel at Dunnaigh.", "ships.pdf"),
    passage("Dunnaigh", "The town has a harbour of 1871, with the Quays."),
    passage("Vantry", "The lighthouse is 40 m high."),
    passage("The crew", "It counted eight.", "ships.pdf"),
    passage("Quays", "They are of 1903."),
)


@pytest.mark.parametrize(
    ("question", "cited", "connected"),
    [
        ("When did Ada Grey Bode launch it?", [1], True),
        ("How old is the harbour of the town where Ada Bode launched it?", [2], True),
        ("How high is the lighthouse of the town where Ada Bode launched it?", [3], False),
        ("How high is the lighthouse of the town where Ada Bode launched it?", [3, 1], True),
        ("How many were in the crew that Ad\u00e1 Bode's ship had?", [4], True),
        ("How old are the quays of the town where Ada Bode launched it?", [5], True),
        ("How high is the lighthouse?", [3], True),
        ("How high is the lighthouse of Acme?", [3], True),
        ("HOW HIGH IS THE LIGHTHOUSE OF TOM MILLER?", [3], True),
        ("How high is the lighthouse of the Annual Report?", [3], True),
        ("How high is the lighthouse of Tom Miller?", [3], False),
        ("Wie hoch ist der Leuchtturm, den Tom Miller gebaut hat?", [3], True),
        ("When did Ada Bode launch it?", [], False),
        ("When did Ada Bode launch it?", [9], False),
    ],
)
def test_an_answer_must_be_connected_with_the_full_name_in_the_question(
    question: str, cited: list[int], connected: bool
) -> None:
    assert is_connected(question, cited, PORT) is connected


def test_one_of_the_two_compared_entities_suffices() -> None:
    passages = (passage("Pride of Kelmouth", "It was 90 m long."), passage("SNS Maristel", "It was 80 m long."))
    assert is_connected("Which ship was longer, SNS Maristel or the Pride of Kelmouth?", [1], passages)


def test_a_section_title_names_the_subject_of_its_passages() -> None:
    passages = (replace(passage("manual.pdf", "The guarantee lasts two years."), section="Petrel Light"),)
    assert is_connected("How long is the guarantee of a Petrel Light?", [1], passages)
