"""Vetoes against taking a sentence as support for a claim; and derived figures."""

from collections.abc import Sequence

import pytest

from meta_agent_rag.grounding import vetoes
from meta_agent_rag.grounding.claims import claims
from meta_agent_rag.grounding.operations import cues, discover_operations
from meta_agent_rag.grounding.support.confirmed import confirmed
from meta_agent_rag.grounding.support.deriving.derived import Vouched, derived
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.grounding.support.sources import read_sources
from meta_agent_rag.grounding.support.statement import read
from meta_agent_rag.grounding.support.tables import lines
from meta_agent_rag.grounding.support.verdict import Support
from meta_agent_rag.grounding.vetoes import discover_vetoes
from meta_agent_rag.retrieval.passage import Found, Passage

TABLE = "| Plant | 2020 | 2021 (t) |\n|---|---|---|\n| Harbour | 395 | 410 |\n| Westfield | 498 | 530 |"
NONE = Support(score=0.0, passage_id=None, supported=False)


def confirm(text: str, claim: str, words: Sequence[str], question: str = "") -> Support:
    passage = Passage(id="p", doc_id="d", title="", text=text)
    return confirmed(NONE, read(claim, "en"), words, read_sources([passage], [1]), read(question, "en"))


@pytest.mark.parametrize(
    ("veto", "sentence", "wrong", "right"),
    [
        ("figures", "The wall is 37 m high.", "The wall is 38 m high.", "The wall is 3700 cm high."),
        ("names", "The wall was built by Veith.", "The wall was built by Otto Kern.", "Veith built the wall."),
        ("negation", "Swimming is not allowed.", "Swimming is allowed.", "Nobody is allowed to swim there."),
        ("negation", "Undo works here but not in the list.", "Undo works in the list.", "Undo works here."),
        ("roles", "Joan Pike thanked Ama Rao.", "Ama Rao thanked Joan Pike.", "Ama Rao was thanked by Joan Pike."),
        ("roles", "Her pupil Marte Lie edited her book.", "Elin Moe edited Marte Lie's book.", "Marte Lie edited it."),
        ("places", "The fine is 20 cents for books and 50 cents for films.", "The fine for books is 50 cents.",
         "The fine for films is 50 cents."),
        ("places", "Strand was born in Oslo and died in Lyon.", "Strand was born in Lyon.", "Strand died in Lyon."),
        ("parties", "The plant in Brno made a profit, the one in Porto a loss.", "The plant in Brno made a loss.",
         "The plant in Brno made a profit."),
        ("parties", "Half is due on the day before, everything on the same day.",
         "Everything is due on the day before, half on the same day.", "On the day before, half of it is due."),
        ("modifiers", "The stone oven bakes 96 loaves; the electric one bakes 60.",
         "The electric oven bakes 96 loaves.", "The stone oven bakes 96 loaves."),
        ("opposites", "Spelling is disabled by default.", "Spelling is enabled by default.",
         "Spelling is off by default."),
        ("rows", TABLE, "Harbour made 530 t in 2021.", "Westfield made 530 t in 2021."),
    ],
)  # fmt: skip
def test_every_veto_separates_a_wrong_claim_from_a_right_one(
    veto: str, sentence: str, wrong: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["| Westfield | 498 | 530 |"] if sentence is TABLE else [sentence]
    alone = {veto: discover_vetoes()[veto]}
    with monkeypatch.context() as patched:
        patched.setattr(vetoes, "discover_vetoes", lambda: alone)
        assert confirm(sentence, wrong, words).fault, "this veto alone must reject the claim"
    assert confirm(sentence, right, words).supported, confirm(sentence, right, words).fault


@pytest.mark.parametrize(
    ("sentence", "wrong", "right"),
    [
        ("Tide is one of composer Ann Bell's works.", "Tide composed Ann Bell.", "Ann Bell composed Tide."),
        ("Tide is by the composer Ann Bell.", "Tide composed Ann Bell.", "Tide was composed by Ann Bell."),
        ("Tide is a song by Italian composer Ann Bell.", "Tide composed Ann Bell.", "Ann Bell composed Tide."),
        ("Norvik managed to conquer Brekke.", "Brekke conquered Norvik.", "Norvik conquered Brekke."),
        ("Norvik managed to conquer Brekke.", "Norvik was conquered by Brekke.", "Brekke was conquered by Norvik."),
        ("Ida Moe dismissed illustrator Sven Dahl.", "Sven Dahl illustrated Ida Moe.", "Ida Moe dismissed Sven Dahl."),
        ("Trains pass over Lake Orna.", "Trains pass under Lake Orna.", "Trains pass over Lake Orna."),
        ("The rebels under Vane lost 300 men.", "The rebels under Krag lost 300 men.", "They lost more than 200 men."),
    ],
)
def test_agent_nouns_and_place_words_are_not_mistaken_for_verbs_or_comparisons(
    sentence: str, wrong: str, right: str
) -> None:
    assert confirm(sentence, wrong, [sentence]).fault
    assert "swapped" not in str(confirm(sentence, right, [sentence]).fault)
    assert "the claim says" not in str(confirm(sentence, right, [sentence]).fault)


def test_a_number_that_follows_a_word_is_a_name_if_the_sentence_before_has_both() -> None:
    text = "There is drumming in flat 9. The tenant promised to stop at 8 pm. Flat 12 heard nothing."
    said = ["The tenant promised to stop at 8 pm."]
    assert confirm(text, "The tenant of flat 9 promised to stop.", said).supported
    assert confirm(text, "The tenant of flat 12 promised to stop.", said).fault == "12 is not in the passage"
    assert (
        confirm(text, "The tenant promised to stop within 9 minutes.", said).fault == "9 minutes is not in the passage"
    )


def test_days_of_the_week_are_known_in_every_language() -> None:
    text = "Die Betreuung ist von Montag bis Donnerstag bis 16.30 Uhr offen, am Freitag bis 15 Uhr."
    assert confirm(text, "On Fridays the care closes at 3 p.m.", [text]).supported
    assert confirm(text, "On Wednesday the care closes at 4:30 p.m.", [text]).supported
    assert confirm(text, "On Sundays the care closes at 3 p.m.", [text]).fault == "Sundays is not mentioned"
    assert confirm("It opens Monday to Thursday.", "It opens on Tuesdays.", ["It opens Monday to Thursday."]).supported


def test_forms_of_address_are_not_compared_between_languages() -> None:
    text = "Frau Oelmann übernimmt die Leitung der Schule von Herrn Drexl."
    assert confirm(text, "Ms Oelmann is the new head; her predecessor was Mr Drexl.", [text]).supported


def test_adverbs_between_commas_are_no_entries_of_a_list() -> None:
    text = "They showed otters on 14 nights, and also roe deer, badgers, stoats, foxes and, once, a polecat."
    assert confirm(text, "Six kinds of mammals were seen.", [text]).derived[0].operation == "count"
    assert confirm(text, "Seven kinds of mammals were seen.", [text]).fault == "7 is not in the passage"


def test_a_period_is_no_party() -> None:
    text = "The portrait shows Captain Wray, painted by his sister Henrietta the year before he sailed."
    claim = "It is by the captain's sister Henrietta, who painted him a year before the voyage."
    assert confirm(text, claim, [text]).supported
    assert confirm(text, "Henrietta was painted by Captain Wray.", [text]).fault


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "\u53c2\u52a0\u306b\u7533\u3057\u8fbc\u307f\u306f\u5fc5\u8981\u3042\u308a\u307e\u305b\u3093\u3002",
            "\u53c2\u52a0\u3059\u308b\u306b\u306f\u7533\u3057\u8fbc\u307f\u304c\u5fc5\u8981\u3067\u3059\u3002",
        ),
        (
            "\u5f7c\u306f\u4eac\u90fd\u306b\u884c\u304b\u306a\u304b\u3063\u305f\u3002",
            "\u5f7c\u306f\u4eac\u90fd\u306b\u884c\u3063\u305f\u3002",
        ),
    ],
)
def test_polite_and_past_denials_in_japanese_are_read(text: str, wrong: str) -> None:
    passage = Found(passage=Passage(id="p", doc_id="d", title="", text=text), score=1.0)
    assert supports(claims(f"{wrong}[1]"), [passage])[0].standing == "open"


def test_words_in_brackets_are_no_clause_of_another_party() -> None:
    sentence = "Tide (a little song) in B major is a song written by Italian composer Ann Bell for two horns."
    assert confirm(sentence, "Ann Bell composed Tide in B major for two horns.", [sentence]).supported


def test_months_are_known_in_every_language() -> None:
    text = "De novembre à février, les bassins restent sous vingt centimètres d'eau."
    assert confirm(text, "From November to February the basins stay under 20 centimetres of water.", [text]).supported
    assert confirm(text, "In January the basins stay under 20 centimetres of water.", [text]).supported
    assert confirm(text, "In March the basins stay under 20 centimetres of water.", [text]).fault


def test_the_day_of_the_week_follows_from_a_date() -> None:
    text = "The first game was played on 11 September 2026."
    assert confirm(text, "The first game was played on Friday 11 September 2026.", [text]).supported
    assert confirm(text, "The first game was played on Monday 11 September 2026.", [text]).fault == (
        "Monday is not mentioned"
    )


def test_the_day_of_a_date_may_be_named_alone() -> None:
    text = "Who loses the harvest must say so before 30 November."
    assert confirm(text, "Who loses the harvest must say so before the 30th.", [text]).supported
    assert confirm(text, "Who loses the harvest must say so before the 20th.", [text]).fault


def test_a_zero_in_a_table_denies() -> None:
    table = "Step | Staff needed\nLunch | 0\nShow | 4"
    words = ["Step | Staff needed", "Lunch | 0"]
    assert confirm(table, "No staff are needed for lunch.", words).supported
    assert confirm(table, "No staff are needed for the show.", ["Step | Staff needed", "Show | 4"]).fault


def test_a_cell_denies_only_its_own_column() -> None:
    table = "Item | Returnable | Washable\nShoes | no | yes\nHats | no | yes"
    words = table.split("\n")
    assert confirm(table, "Shoes and hats are not returnable.", words).supported
    assert confirm(table, "Shoes are not washable.", words).fault
    assert confirm(table, "Shoes are neither returnable nor washable.", words).fault


def test_a_name_in_the_question_may_stand_in_any_passage_of_the_prompt() -> None:
    texts = [("Ida Moe", "Ida Moe played Ruth in Salt Road."), ("She's Away Again", "She's Away Again is a film.")]
    cited, other = (Passage(id=title, doc_id=title, title=title, text=text) for title, text in texts)
    question = read("Who played Ruth in Salt Road and was in She's Away Again?", "en")
    claim = read("Ida Moe played Ruth in Salt Road and was in She's Away Again.", "en")
    sources = read_sources([cited, other], [1]), read_sources([cited, other], [2])
    found = confirmed(NONE, claim, [texts[0][1]], sources[0], question, others=sources[1])
    assert found.fault is None
    assert confirmed(NONE, claim, [texts[0][1]], sources[0], question).fault


def test_every_veto_is_tested_and_named_after_its_file() -> None:
    names = set(discover_vetoes())
    assert len(names) >= 8
    assert names == {"figures", "names", "negation", "roles", "places", "parties", "modifiers", "opposites", "rows"}


@pytest.mark.parametrize("words", [(), ("",), ("The wall is blue.",), ("The wall is 37 m high.",) * 40])
def test_a_yes_needs_a_quote_from_the_passage(words: Sequence[str]) -> None:
    reply = confirm("The wall is 37 m high. It was built in 1912.", "The wall is 37 m high.", words)
    assert not reply.supported
    assert "the critic quoted" in (reply.fault or "")


def test_a_paraphrase_of_few_common_words_is_left_to_the_critic() -> None:
    sentence = "The meeting was chaired by Ama Boateng in the absence of Colin Marsh."
    assert confirm(sentence, "Ama Boateng presided over that day's gathering.", [sentence]).supported
    assert not confirm(sentence, "The meeting was chaired by Colin Marsh.", [sentence]).supported


@pytest.mark.parametrize(
    ("claim", "named", "operation", "steps"),
    [
        ("Together they cost £2,200.", "£1,260 for the hall and £940 for the path", "sum", "£1,260 + £940 = 2,200"),
        ("The limit rose by 16 MB.", "64 MB, up from 48 MB", "difference", "64 MB \u2212 48 MB = 16"),
        ("It took 28 days.", "from 12 July 2021 to 9 August 2021", "duration", "12 July 2021 \u2192 9 August 2021: 28"),
        ("She was 77 years old.", "born 9 October 1871, died 30 January 1949", "duration",
         "9 October 1871 \u2192 30 January 1949: 77"),
        ("It returned in 2019.", "found on 2 March 1978; 41 years for one orbit", "duration",
         "2 March 1978 + 41 years = 2019"),
        ("It is open for four hours.", "from 10 am to 2 pm", "duration", "10 am \u2192 2 pm: 4"),
        ("That is 15 %.", "18 of 120 patients", "share", "18 / 120 = 15 %"),
        ("The mean is 6 t.", "4 t and 8 t", "average", "(4 t + 8 t) / 2 = 6"),
        ("She won three times.", "in 1905, 1919 and 1933", "count", "1905, 1919, 1933: 3"),
        ("In all it holds 135,000 litres.", "600 casks of 225 litres", "product", "600 \u00d7 225 litres = 135,000"),
    ],
)  # fmt: skip
def test_derived_figures_are_explained(claim: str, named: str, operation: str, steps: str) -> None:
    (found,) = derived(read(claim, "en"), [read(named, "en")])
    assert (found.operation, found.steps) == (operation, steps)


@pytest.mark.parametrize(
    ("question", "claim", "named", "operation", "steps"),
    [
        ("", "Three adults and a child pay £26.", "An adult pays £7 and a child pays £5; 3 at most.", "total",
         "3 \u00d7 £7 + £5 = 26"),
        ("", "15 ml hold 7.5 g of sugar.", "15 ml a day; 2.5 g of sugar per 5 ml", "proportion",
         "2.5 g \u00d7 15 ml / 5 ml = 7.5"),
        ("", "The town pays 108,000 EUR.", "The county covers 70 % of 360,000 EUR, the town the rest.", "share",
         "360,000 EUR \u2212 70 % = 108,000"),
        ("", "40 % of them are women.", "60 % are men; 212 came in 2019.", "share", "100 % \u2212 60 % = 40 %"),
        ("I bought it on 15 January 2023.", "The warranty ends in July 2025.", "30 months of warranty", "duration",
         "15 January 2023 + 30 months = July 2025"),
        ("", "The doors close at 2:25 pm.", "It sails at 2:40 pm and 5:55 pm; board 15 minutes before.", "duration",
         "2:40 pm \u2212 15 minutes = 2:25 pm."),
        ("", "They work for seven hours.", "from 22:15 to 6:00, with a break of 45 minutes", "duration",
         "22:15 \u2192 6:00 \u2212 45 minutes = 7"),
        ("", "It uses 6 kWh.", "1.5 kW for four hours; built in 2018", "product", "1.5 kW \u00d7 4 hours = 6"),
        ("", "The rent is 12 EUR per square metre.", "78 square metres; 936 EUR a month", "product",
         "936 EUR / 78 square metres = 12"),
        ("", "They got seven keys.", "On 30 March they got four house keys, two cellar keys and a key for the box.",
         "count", "4 + 2 + 1 = 7"),
    ],
)  # fmt: skip
def test_a_critics_yes_allows_any_operation(question: str, claim: str, named: str, operation: str, steps: str) -> None:
    vouched = Vouched(question=read(question, "en"), passage=())
    found = derived(read(claim, "en"), [read(named, "en")], vouched=vouched)
    assert [(one.operation, one.steps) for one in found][-1:] == [(operation, steps)]


def test_a_column_of_a_table_may_be_summed_and_its_rows_counted() -> None:
    rows = [read(line.text, "en", line.label) for line in lines(TABLE) if line.label]
    vouched = Vouched(question=read("", "en"), passage=rows)
    (total,) = derived(read("In 2021 both plants made 940 t.", "en"), rows[:1], vouched=vouched)
    assert (total.operation, total.steps) == ("sum", "410 t + 530 t = 940")
    halls = "Hall | Seats\nNorth | 410\nSouth | 530\nEast | 96"
    rows = [read(line.text, "en", line.label) for line in lines(halls) if line.label]
    vouched = Vouched(question=read("", "en"), passage=rows)
    (number,) = derived(read("There are three halls.", "en"), rows[:1], vouched=vouched)
    assert number.steps == "North, South, East: 3"


MILLS = "| Mill | Wheels | Power (kW) |\n|---|---|---|\n| Bren | 3 | 4.2 |\n| Port Sellan | 1 | 2.0 |"
KEEPERS = "| Keeper | From | Left |\n|---|---|---|\n| Ada Bode | 1901 | 1910 |"


@pytest.mark.parametrize(
    ("table", "claim", "seen"),
    [
        (MILLS, "The mill of Bren has 2 wheels.", "Tide Mills"),
        (MILLS, "The mill of Bren has two wheels.", "Tide Mills"),
        (MILLS, "The mill of Port Sellan has 2 wheels.", "Tide Mills"),
        (MILLS, "The mill of Bren has 4 wheels.", "Tide Mills"),
        (MILLS.replace("|", "\t"), "The mill of Bren has 2 wheels.", "Tide Mills"),
        (KEEPERS, "The lighthouse had 2 keepers.", "The Lighthouse"),
        (KEEPERS, "The lighthouse had 3 keepers.", "The Lighthouse"),
        ("Keeper | From\nAda Bode | 1901", "The lighthouse had 2 keepers.", "The Lighthouse"),
        (KEEPERS.replace("Keeper | From | Left", "Keeper | From"), "The lighthouse had 2 keepers.", "The Lighthouse"),
    ],
)
def test_the_cells_of_a_row_and_the_headers_are_not_counted(table: str, claim: str, seen: str) -> None:
    passage = Found(passage=Passage(id="1", doc_id="1", title=seen, text=table), score=1.0)
    (support,) = supports(claims(f"{claim[:-1]} [1]."), [passage], question="How many are there?")
    assert (support.supported, support.derived) == (False, ())


def test_a_list_within_a_cell_is_counted_if_a_critic_agrees() -> None:
    (row,) = [
        read(line.text, "en", line.label) for line in lines("Mill | Grain\nBren | rye, oats and wheat") if line.label
    ]
    claim = read("The mill of Bren ground 3 kinds of grain.", "en")
    (kinds,) = derived(claim, [row], vouched=Vouched(question=read("", "en"), passage=()))
    assert kinds.steps == "rye; oats; wheat: 3"
    assert derived(claim, [row]) == ()


def test_a_time_without_years_is_that_of_a_common_year() -> None:
    named = read("Motor B was taken out on 17 February and returned on 3 March.", "en")
    (found,) = derived(read("It was gone for 14 days.", "en"), [named])
    assert (found.operation, found.steps) == ("duration", "17 February \u2192 3 March.: 14")
    assert derived(read("It was gone for 16 days.", "en"), [named]) == ()
    over_new_year = read("The office is closed from 25 December to 3 January.", "en")
    assert derived(read("It is closed for 9 days.", "en"), [over_new_year])


@pytest.mark.parametrize("claim", ["Together they cost £2,300.", "It took 27 days.", "She was 78 years old."])
def test_underivable_figures_are_not_explained(claim: str) -> None:
    named = read("£1,260 for the hall and £940 for the path; from 12 July 2021 to 9 August 2021", "en")
    assert derived(read(claim, "en"), [named]) == ()


def test_trigger_words_belong_to_operations() -> None:
    assert len(discover_operations()) >= 9
    assert set(cues()) <= {*discover_operations(), "count"}


def test_rows_of_a_table_are_read_with_their_headers() -> None:
    rows = [line for line in lines(f"Output\n{TABLE}\nThat is all.") if line.label]
    assert [row.text for row in rows] == [
        "Plant = Harbour; 2020 = 395; 2021 = 410 t",
        "Plant = Westfield; 2020 = 498; 2021 = 530 t",
    ]
    assert [line.text for line in lines("a\tb\n1\t2\n")] == ["a; b", "a = 1; b = 2"]


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("The pump was switched on at noon.", "The pump was switched off at noon."),
        ("No-one was hurt in the fire.", "She was hurt in the fire."),
        ("No-smoking rooms are on the third floor.", "Smoking rooms are on the third floor."),
        ("The engineers worked 30 days on the bridge.", "The 12 engineers worked 360 days on the bridge."),
        ("The museum owns 30 paintings.", "The 7 museums own 210 paintings."),
        ("The lift, the pump and the boiler were replaced.", "The 3 boilers were replaced."),
    ],
)
def test_the_rules_alone_do_not_accept_these_claims(sentence: str, claim: str) -> None:
    passage = Passage(id="p", doc_id="d", title="", text=sentence)
    (found,) = supports(claims(f"{claim} [1]", [sentence]), [Found(passage=passage, score=1.0)])
    assert not found.supported


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("The park covers 5 square kilometres.", "The park covers 500 hectares."),
        ("The tank holds 2 cubic metres.", "The tank holds 2000 litres."),
        ("In 1986 Stone directed Platoon in the Philippines.", "Stone directed Platoon in 1986."),
    ],
)
def test_the_rules_alone_do_not_refute_these_claims(sentence: str, claim: str) -> None:
    passage = Passage(id="p", doc_id="d", title="", text=sentence)
    (found,) = supports(claims(f"{claim} [1]", [sentence]), [Found(passage=passage, score=1.0)])
    assert found.standing != "refuted"
    assert found.supported, found


def test_a_product_has_a_single_explanation() -> None:
    figures = derived(read("The 12 crates hold 360 bottles in total.", "en"), [read("A crate holds 30 bottles.", "en")])
    assert len({one.steps for one in figures}) == 1
