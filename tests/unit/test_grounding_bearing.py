"""Does what is supported bear on what was asked?"""

from collections.abc import Sequence

import pytest

from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.relevance import holds_the_answer, on_the_question, speaks_of
from meta_agent_rag.grounding.support.statement import Statement, read
from meta_agent_rag.grounding.support.verdict import Support
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
def test_what_a_source_speaks_of(question: str, source: str, speaks: bool) -> None:
    assert speaks_of(question, statements(source)) is speaks


def judged(*supported: bool) -> Sequence[Support]:
    return [Support(score=0.9, passage_id="p", supported=each) for each in supported]


def test_what_says_next_to_nothing_is_judged_by_its_question() -> None:
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
def test_the_short_answer_needs_a_supported_claim(
    short: str, answer: str, supported: tuple[bool, ...], holds: bool
) -> None:
    question = "Was the Grey Petrel built at Rome?"
    assert holds_the_answer(question, short, claims(answer), judged(*supported), YARDS) is holds


def test_a_verdict_may_follow_from_other_claims() -> None:
    question = "Were the Grey Petrel and the Star of Ithry built by the same yard?"
    stated = claims("No, they are of different yards [1]. The Grey Petrel was built at Dunnaigh [1].")
    assert holds_the_answer(question, "no", stated, judged(False, True), YARDS)
    assert not holds_the_answer("Is Paris old?", "no", stated, judged(False, True), YARDS)
