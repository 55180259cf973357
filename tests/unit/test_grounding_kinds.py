"""Whether a checked answer is of the kind that its question asks for, in several languages."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding import kinds
from meta_agent_rag.grounding.kinds.asked import Asked, asked_for
from meta_agent_rag.grounding.kinds.fitting import answers_in_kind
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.testing import Scripted
from meta_agent_rag.text.language import LANGUAGES

from .test_agent_grounded import FixedRetriever, answering, grounded

CHOICE = "Which film has the director who died earlier, The Salt Road or Two Lamps?"


@pytest.mark.parametrize(
    ("question", "short_answer", "claim"),
    [
        ("Who built the tide mill of Port Sellan?", "1803", "The tide mill was built in 1803."),
        (
            "Who built the tide mill of Port Sellan?",
            "The tide mill was built in 1803",
            "The tide mill was built in 1803.",
        ),
        ("Who built the tide mill of Port Sellan?", "in 1803", "The tide mill was built in 1803."),
        ("Who built the tide mill of Port Sellan?", "built in Port Sellan", "The tide mill was built in Port Sellan."),
        ("By whom was the tide mill built?", "in Port Sellan", "The tide mill was built in Port Sellan."),
        ("Who built the tide mill?", "9 October 2019", "It was built on 9 October 2019."),
        ("How much does the Osprey cost?", "9 October 2019", "The Osprey was launched on 9 October 2019."),
        (
            "How much does the Osprey cost?",
            "The Osprey was launched on 9 October 2019",
            "The Osprey was launched on 9 October 2019.",
        ),
        ("How much does the Osprey cost?", "in 2019", "The Osprey was launched in 2019."),
        ("How much does the Osprey cost?", "4 kg", "The Osprey weighs 4 kg."),
        ("How long does the kiln stay hot?", "1,200 °C", "The kiln is fired at 1,200 °C."),
        ("How long does the crossing take?", "12 km", "The crossing is 12 km long."),
        ("How long is the bridge?", "£340", "The bridge cost £340."),
        ("How long is the bridge?", "1803", "The bridge was built in 1803."),
        ("How far is the mill?", "1803", "The mill was built in 1803."),
        ("How heavy is the bell?", "3 m", "The bell is 3 m high."),
        ("How fast is the ferry?", "1990", "The ferry was built in 1990."),
        ("How many seats has the hall?", "in 1990", "The hall was built in 1990."),
        ("Where was it built?", "1803", "It was built in 1803."),
        ("Where was the mill built?", "The mill was built in 1803", "The mill was built in 1803."),
        ("Wer baute die Gezeitenmühle von Port Sellan?", "1803", "Die Gezeitenmühle wurde 1803 gebaut."),
        ("Wer baute die Gezeitenmühle?", "in Port Sellan", "Die Gezeitenmühle wurde in Port Sellan gebaut."),
        ("Qui a construit le moulin ?", "en 1803", "Le moulin a été construit en 1803."),
        ("¿Quién construyó el molino?", "en Port Sellan", "El molino fue construido en Port Sellan."),
        ("Chi ha costruito il mulino?", "1803", "Il mulino fu costruito nel 1803."),
        ("Quem construiu o moinho?", "em 1803", "O moinho foi construído em 1803."),
        ("Wie bouwde de molen?", "in 1803", "De molen werd gebouwd in 1803."),
        ("水車は誰が建てましたか。", "1803年", "水車は1803年に建てられました。"),
        ("Wie lange dauert der Kurs?", "20 °C", "Der Raum hat 20 °C."),
        ("Wie viel kostet der Kurs?", "1990", "Der Kurs begann im Jahr 1990."),
        ("Combien coûte le cours ?", "en 1990", "Le cours a commencé en 1990."),
        ("Wann wurde die Mühle gebaut?", "12 kg", "Sie wiegt 12 kg."),
        ("Did the council build the railway?", "no", "The council had a mayor."),
        ("Did the council build the railway?", "The council had a mayor", "The council had a mayor."),
        ("Did Ada Lind build the railway?", "yes", "Ada Lind was a mayor."),
        ("Who opened the mill?", "at 20:15", "The mill opened at 20:15."),
        ("Hoeveel kost het?", "in 1990", "Het begon in 1990."),
        ("Quanto costa il corso?", "nel 1990", "Il corso iniziò nel 1990."),
        ("How tall is she?", "3 days", "She stayed 3 days."),
    ],
)
def test_an_answer_of_another_kind_does_not_fit(question: str, short_answer: str, claim: str) -> None:
    assert not answers_in_kind(question, short_answer, [claim])


@pytest.mark.parametrize(
    ("question", "short_answer", "claim"),
    [
        ("Who built the tide mill?", "Ada Lind", "The tide mill was built in Port Sellan by Ada Lind."),
        ("Who built it?", "the monks of Bren", "In 1803 the monks of Bren built it."),
        ("Who owns the Ada Lind company?", "Ada Lind", "Ada Lind owns it."),
        ("Who does she believe in?", "Ada Lind", "She believes in Ada Lind."),
        ("Who was there?", "the 9th Duke", "The 9th Duke was there."),
        ("Who sings it?", "50 Cent", "50 Cent sings it."),
        ("Who won?", "U2", "U2 won."),
        ("Who hosted it?", "Oslo", "Oslo hosted it."),
        ("How much does it cost?", "free", "It is free."),
        ("How much does it cost?", "25", "It costs 25."),
        ("How much does it cost?", "£2,019", "It costs £2,019."),
        ("How much does it cost?", "nothing", "Members pay nothing."),
        ("How much rent is due?", "half", "Half of the rent is due."),
        ("How long does it take?", "a week", "It takes a week."),
        ("How long does it take?", "until 1912", "It took until 1912."),
        ("How long did it last?", "from 1880 to 1900", "It lasted from 1880 to 1900."),
        ("How long is the bridge?", "three kilometres", "It is three kilometres long."),
        ("How long has it been open?", "since 1990", "It has been open since 1990."),
        ("How far is it?", "two hours by car", "It is two hours by car."),
        ("How heavy is the bell?", "3 t", "The bell weighs 3 t."),
        ("How fast is it?", "12 knots", "It runs 12 knots."),
        ("How many seats?", "2019", "There are 2019 seats."),
        ("How old is it?", "It opened in 1803", "It opened in 1803."),
        ("Where is it?", "Oslo", "It is in Oslo."),
        ("Where is it?", "at 2027 Fairmount Avenue", "It is at 2027 Fairmount Avenue."),
        ("Where is it?", "12 m below the deck", "It is 12 m below the deck."),
        ("Wer baute die Mühle?", "Ada Lind", "Die Mühle wurde von Ada Lind gebaut."),
        ("Wer ist zuständig?", "das Bauamt", "Zuständig ist das Bauamt in Bren."),
        ("Wie alt ist die Mühle?", "200 Jahre", "Die Mühle ist 200 Jahre alt."),
        ("Wie lange dauert es?", "3 Tage", "Es dauert 3 Tage."),
        ("Qui a construit le moulin ?", "Ada Lind", "Le moulin a été construit par Ada Lind."),
        ("Combien de temps dure le cours ?", "trois jours", "Le cours dure trois jours."),
        ("Combien coûte le cours ?", "40 €", "Le cours coûte 40 €."),
        ("Cuánto cuesta?", "40 €", "Cuesta 40 €."),
        ("水車は誰が建てましたか。", "田中", "水車は田中が建てました。"),
        ("Did the council build the railway?", "no", "No. The railway was built by the state."),
        ("Did the council build the railway?", "no", "No."),
        ("Is Ada from Oslo?", "no", "Ada was born in Bergen."),
        ("Is the mill older than the bridge?", "yes", "The mill was built in 1803 and the bridge in 1810."),
        ("Is the mill closed?", "no", "The mill is open on Mondays."),
        (
            "Are Salt Road and Two Lamps both from the same country?",
            "no",
            "Salt Road is Norwegian and Two Lamps is French.",
        ),
        ("Was Ada Lind born in Oslo?", "yes", "Ada Lind was born in Oslo."),
        ("What was the name of the ship?", "Fram", "The ship was called Fram."),
        ("When was the tower clock wound?", "in spring", "It was wound in spring."),
        ("How long is the film?", "90 minutes", "The film runs for 90 minutes."),
        ("How much of the roof was lost?", "all of it", "All of the roof was lost."),
        ("How much does a ticket cost?", "half price", "Pupils pay half."),
        ("How tall is she?", "6 feet", "She is 6 feet tall."),
        ("How fast was it?", "24 km/h", "It averaged 24 kilometres an hour."),
        ("Wie hoch ist die Miete?", "12 Euro", "Die Miete beträgt 12 Euro."),
        ("Chi guida l'azienda?", "Eleanor Vance", "Dal 1° luglio la guida è passata a Eleanor Vance."),
        ("Who was chosen?", "Ada Lind", "The choice fell on Ada Lind."),
        ("Quand se joue la pièce et combien coûte une place ?", "14 euros", "Elle coûte 14 euros."),
        ("Hoeveel uur les krijg je?", "10 uur", "Alle lessen samen duren 10 uur."),
    ],
)
def test_an_answer_of_the_kind_fits(question: str, short_answer: str, claim: str) -> None:
    assert answers_in_kind(question, short_answer, [claim])


def test_a_critic_may_find_that_a_sentence_answers_a_yes_or_no_question() -> None:
    question, claims = "Did the council build the railway?", ["The council paid for all tracks."]
    assert not answers_in_kind(question, "no", claims)
    assert answers_in_kind(question, "no", claims, answers=True)


@pytest.mark.parametrize(
    ("question", "short_answer", "in_kind"),
    [
        (CHOICE, "The Salt Road", True),
        (CHOICE, "Salt Road (1962 film)", True),
        (CHOICE, "Two Lamps", True),
        (CHOICE, "The film Two Lamps by Ada Roth", True),
        (CHOICE, "The Salt Mine", False),
        (CHOICE, "Ada Roth", False),
        ("Who was born first, Al-Karaji or Bo Lind?", "Abu Bakr al-Karaj\u012b", True),
        ("Who was born first, Al-Karaji or Bo Lind?", "Abu Bakr", False),
        ("When is the tower clock wound?", "once a week, on Fridays", True),
        ("When does the harbour open?", "daily", True),
        ("When was pay day?", "Saturdays", True),
        ("When was the tower clock wound?", "springs", False),
    ],
)
def test_a_choice_is_one_of_the_two_and_a_habit_needs_no_date(question: str, short_answer: str, in_kind: bool) -> None:
    assert answers_in_kind(question, short_answer, [f"It is {short_answer}."]) is in_kind


def test_every_pattern_is_of_a_known_kind_and_language() -> None:
    rows: Mapping[str, Any] = yaml.safe_load(files(kinds).joinpath("questions.yaml").read_text(encoding="utf-8"))
    for part in ("kinds", "anywhere"):
        assert set(rows[part]) <= set(get_args(Asked))
        assert {code for words in rows[part].values() for code in words} <= set(LANGUAGES)


def test_german_how_is_no_dutch_who() -> None:
    assert asked_for("Wie alt ist die Mühle?", "nl") is None
    assert asked_for("Wie bouwde de molen?", "nl") == "person"
    assert asked_for("\u00bfQui\u00e9n lo hizo?", "es") == "person"


@given(st.text(max_size=60), st.text(max_size=40), st.text(max_size=60))
def test_any_text_can_be_judged(question: str, short_answer: str, claim: str) -> None:
    assert answers_in_kind(question, short_answer, [claim]) in (True, False)


MILL = "The tide mill of Port Sellan was built in 1803."


@pytest.mark.parametrize("check", ["rules", "both"])
@pytest.mark.parametrize("short", ["1803", "The tide mill was built in 1803", "in 1803"])
async def test_a_date_is_not_shown_as_a_person(tmp_path: Path, check: str, short: str) -> None:
    verdicts = [{"claim": 0, "quotes": [], "supported": False}, {"claim": 1, "quotes": [MILL], "supported": True}]
    lenient: Scripted = {"claims": verdicts, "answers_question": True}
    script = answering("The tide mill was built in 1803 [1].", quotes=(MILL,), short=short) | {"check_claims": lenient}
    reply = await grounded(
        tmp_path, script, f"CLAIM_CHECK={check}", question="Who built the tide mill of Port Sellan?",
        retriever=FixedRetriever(passages=(Passage(id="1", doc_id="1", title="Tide Mills", text=MILL),)),
    )  # fmt: skip
    assert reply.refused == "off_question"
