"""Claims, what code decides about them exactly, and how the result is shown."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_agent_rag.grounding.citations import marked
from meta_agent_rag.grounding.exact import Source, Support, calculated, lacking, said_exactly, values_in
from meta_agent_rag.grounding.marks import claims, with_plain_marks
from meta_agent_rag.grounding.quotes import is_verbatim
from meta_agent_rag.retrieval.passage import Passage


def claims_of(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.marks) for claim in claims(answer)]


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("", []),
        ("Ada wrote it [1]. He left [2, 3].", [("Ada wrote it.", (1,)), ("He left.", (2, 3))]),
        ("Ada wrote it. [1] He left. [2]", [("Ada wrote it.", (1,)), ("He left.", (2,))]),
        ("Ada [1] wrote it [2][1].", [("Ada wrote it.", (1, 2))]),
        ("Ada wrote it.\n[2] He left.", [("Ada wrote it.", ()), ("He left.", (2,))]),
        ("# Life\n- Ada wrote it [1].\n- He left.", [("Ada wrote it.", (1,)), ("He left.", ())]),
        ("Here is what is known:\n\nDid he? Yes.", [("Yes.", ())]),
        ("In 1912 she said:", [("In 1912 she said:", ())]),
        ("J. Holt of the U.S. left at 5 p.m. sharp [1].", [("J. Holt of the U.S. left at 5 p.m. sharp.", (1,))]),
        ("... [1]", []),
    ],
)
def test_claims_by_hand(answer: str, stated: list[tuple[str, tuple[int, ...]]]) -> None:
    assert claims_of(answer) == stated


def sources(text: str, title: str = "Low Tide") -> list[Source]:
    return [Source(number=1, passage=Passage(id="a", doc_id="a", title=title, text=text))]


TEXT = (
    "Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt. Nobody says that she left the city. "
    "She won two prizes in 1912! Later she moved to the town of Bergen."
)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Low Tide: A Life at Sea is a 2004 film by the Oslo-based director Mira Holt.", TEXT),
        ("Low Tide won two prizes in 1912.", TEXT),
        ("She moved to Bergen.", TEXT),
        ("The net profit was 67,845 crore.", "Revenue 792,756 million Net profit 67,845 crore Exports 12,300 crore"),
        ("The pump delivers 40 litres a minute.", "The pump delivers 40 litres a minute."),
        ("水深は4.5メートルです", "港の水深は4.5メートルです。"),
        ("Visitors can't enter it at night.", "Visitors cannot enter it at night."),
        ("It cost 1,200 euros in all.", "It cost 1200 euros in all."),
    ],
)
def test_what_a_sentence_says_in_the_same_words_is_supported(claim: str, text: str) -> None:
    support = said_exactly(claim, sources(text), "")
    assert (support.supported, support.number, support.passage_id) == (True, 1, "a")
    assert all(is_verbatim(part, [text]) for part in support.words)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("She left the city.", TEXT),
        ("Mira Holt is the Oslo-based film of a director.", TEXT),
        ("5 million people died in the war.", "About 2.5 million people died in the war."),
        ("Smith was convicted of the fraud.", "No court ever found that Mr. Smith was convicted of the fraud."),
        ("She was found guilty of it.", "She was found guilty of it? No, she was acquitted."),
        ("The proposal was adopted.", "The proposal was not adopted."),
        (
            "A male duck is called a hen.",
            "A male is called a drake and the female is called a duck, or in ornithology a hen.",
        ),
        ("It was chaired by Colin Marsh.", "It was chaired by Ama Boateng in the absence of Colin Marsh."),
        ("It is open daily.", "It is open daily except Monday."),
        ("Visitors can enter it at night.", "Visitors cannot enter it at night."),
        ("The pumps are safe at night.", "The pumps aren\u2019t safe at night."),
        ("Ele \u00e9 m\u00e9dico hoje.", "Ele n\u00e3o \u00e9 m\u00e9dico hoje."),
        ("他是医生。", "他不是医生。"),
        ("他是医生。", "他是医生\uff1f"),
        ("The tunnel is 35 km long.", "The tunnel is 3.5 km long."),
        ("It grew by 2375 percent then.", "It grew by 2.375 percent then."),
        ("It is 5 degrees outside.", "It is \u20135 degrees outside."),
        ("It is 5 degrees outside.", "It is minus 5 degrees outside."),
        ("It is 12 degrees outside.", "It is -12 degrees outside."),
        ("", TEXT),
    ],
)
def test_other_words_another_order_or_a_denial_are_not(claim: str, text: str) -> None:
    assert not said_exactly(claim, sources(text), "").supported


def test_a_short_claim_must_answer_the_question() -> None:
    text = "Mira Holt was born in Oslo."
    assert said_exactly("Oslo.", sources(text), "Where was Mira Holt born?").supported
    assert not said_exactly("Oslo.", sources(text), "Where did Mira Holt die?").supported
    assert not said_exactly("Mira Holt was born in Oslo.", sources(text, "Lives"), "How fast may boats go?").supported


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        ("It costs 50 euros.", "It costs 1500 euros.", ["50"]),
        ("It costs 250 euros.", "It costs 1,250 euros.", ["250"]),
        ("It is 5 km long.", "It is 3.5 km long.", ["5"]),
        ("It took 21 hours.", "It took 2\u00bd hours.", ["21"]),
        ("It has 11 rooms.", "It was once a hall with many rooms.", ["11"]),
        ("He had 2 sons.", "The rent is due to him.", ["2"]),
        ("It took 2.5 hours.", "It took 2\u00bd hours.", []),
        ("It has 50 m\u00b2.", "It has 50 square metres.", []),
        ("Er hatte 2 S\u00f6hne.", "Er hatte zwei S\u00f6hne und lebte mit der Frau auf dem Land.", []),
        ("It was on 12 August 1966.", "Es war am 12.08.1966 in Bern.", []),
        ("It closes at 17.", "It is open from 9:30 to 17:00.", []),
        ("They won by 3 goals to 1.", "The score was 3:1.", []),
        ("It was founded in 1987.", "It was founded in 1987.3 The city grew.", []),
        ("In 1990 about 1/3 of them voted.", "In 1990 \u2153 of them voted.", []),
        ("She has 2 children.", "Elle a deux enfants.", []),
        ("She has 3 children.", "Sie hat drei Kinder in Berlin.", []),
    ],
)
def test_a_figure_is_a_number_of_the_text_and_no_part_of_one(claim: str, text: str, missing: list[str]) -> None:
    assert lacking(claim, sources(text), "", "") == (missing, [])


@pytest.mark.parametrize(
    ("claim", "calculation", "missing", "steps"),
    [
        ("It took 28 days.", "2021-08-09 - 2021-07-12 = 28", [], ["2021-08-09 \u2212 2021-07-12 = 28"]),
        ("It cost \u00a32,200.", "1260 + 940 = 2200", [], ["1260 + 940 = 2200"]),
        ("It ended at 21:00.", "19:30 + 70 + 20 = 21:00", [], ["19:30 + 70 + 20 = 21:00"]),
        ("A third, 33 %, came.", "40 / 120 * 100 = 33.3", [], ["40 \u00f7 120 \u00d7 100 = 33.3"]),
        ("It cost 1.260 in all.", "", [], []),
        ("It cost \u00a32,300.", "1260 + 940 = 2300", ["2,300"], []),
        ("It cost \u00a32,200.", "1260 + 940 = 2200, 2 + 2 = 4", [], ["1260 + 940 = 2200"]),
        ("They won 68 cups.", "68 - 0 = 68", ["68"], []),
        ("It costs 3.3333 euros.", "41 / 12.3 = 3.3333", ["3.3333"], []),
        ("It costs 99 euros.", "__import__('os').getpid() = 99", ["99"], []),
        ("It costs 99 euros.", "9 ** 9 ** 9 = 99; (((((", ["99"], []),
        ("The KX-41/12 costs seven euros.", "", [], []),
        ("The path cost Ada Lovelace \u00a3940.", "", ["Ada Lovelace"], []),
    ],
)  # fmt: skip
def test_a_figure_occurs_or_follows_from_figures_that_do(
    claim: str, calculation: str, missing: list[str], steps: list[str]
) -> None:
    text = (
        "The hall cost \u00a31,260, the path \u00a3940; of 120 people 40 came to the 70 minutes from 19:30, after 20"
        " minutes in three cars. The KX-41/12 ran from 12 July to 9 August 2021."
    )
    assert lacking(f"So {claim}", sources(text), "", calculation) == (missing, steps)


def test_a_translation_may_spell_names_differently() -> None:
    text = "Queen Mary of the United Kingdom opened the hall."
    assert lacking("Im Saal sprach Maria vom Vereinigten K\u00f6nigreich.", sources(text), "", "") == ([], [])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80) | st.text("0123456789+-*/()=.,:%; ", max_size=60))
def test_any_calculation_is_read_without_an_error(text: str) -> None:
    for one in calculated(text, values_in(text)):
        assert one.operands
        assert one.results


def test_claims_are_annotated_with_their_support() -> None:
    answer = "Mira Holt was born in Oslo. It cost 7 euros [2]. She won [9]."
    support = [
        Support(supported=True, number=1),
        Support(supported=True, number=1, also=(2,), steps=("3 + 4 = 7",)),
        Support(supported=False),
    ]
    assert marked(answer, claims(answer), support) == (
        "Mira Holt was born in Oslo. [1] It cost 7 euros [2]. [1] [derived: 3 + 4 = 7] She won [9]. [unsupported]"
    )
    assert "She won" not in marked(answer, claims(answer), support, drop=True)
    other = [Support(supported=True, number=1), *support[1:]]
    moved = marked("Born in Oslo [2]. " + answer[28:], claims("Born in Oslo [2]. " + answer[28:]), other)
    assert moved.startswith("Born in Oslo [1].")


@pytest.mark.parametrize(
    ("form", "plain"),
    [
        ("[1]", "[1]"), ("[passage 1]", "[1]"), ("(passage 1)", "[1]"), ("(1)", "[1]"), ("[^1]", "[1]"),
        ("[1\u2020source]", "[1]"),
        ("\u30101\u2020source\u3011", "[1]"), ("[Source: 1, 2]", "[1, 2]"), ("(passages 1 and 2)", "[1, 2]"),
        ("(see document 2)", "[2]"),
        ("(passage 9)", "(passage 9)"), ("(9)", "(9)"),
    ],
)  # fmt: skip
def test_every_form_of_citation_is_read(form: str, plain: str) -> None:
    said = "The pump delivers 40 litres a minute"
    assert with_plain_marks(f"{said} {form}.", 2) == f"{said} {plain}."


def test_a_citation_before_its_claim_is_moved_behind_it() -> None:
    said = "According to passage 1, the pump delivers 40 litres a minute. As stated in [passage 2], it leaks."
    assert with_plain_marks(said, 2) == "The pump delivers 40 litres a minute [1]. It leaks [2]."


@pytest.mark.parametrize("text", ["He has two (2) dogs.", "(1) first, (2) second", "in (1912).", "f(1) grows"])
def test_other_brackets_are_left_alone(text: str) -> None:
    assert with_plain_marks(text, 5) == text
