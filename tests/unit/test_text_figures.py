"""Figures in running text, read as values in many languages."""

from datetime import date

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.text.dates import Date
from meta_agent_rag.text.figures import Figure, figures, in_digits
from meta_agent_rag.text.figures.figure import in_unit, stands_in
from meta_agent_rag.text.language import language_of


def read(text: str) -> tuple[Figure, ...]:
    return figures(in_digits(text), language_of(text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Bills of £1,260 and £940.50 came in.", [(1260.0, "currency:GBP"), (940.5, "currency:GBP")]),
        (
            "Die Mauer ist 37,5 Meter hoch und staut 2,4 Millionen Kubikmeter.",
            [(37.5, "meter"), (2.4e6, "cubic_meter")],
        ),
        ("Sie versorgt 3.200 Haushalte mit Strom.", [(3200.0, "")]),
        ("甲板のクレーンは4.5トンまで持ち上げられる。", [(4.5, "tonne")]),
        ("大坝高37.5米、水量2.4亿立方米。", [(37.5, "meter"), (2.4e8, "cubic_meter")]),
        ("Nausea was reported by 15 % of 120 patients.", [(15.0, "percent"), (120.0, "")]),
        ("It is open from 9 am to 7:30 pm every day.", [(540.0, "clock"), (1170.0, "clock")]),
        ("They had twenty-five cats and two dogs, and no one knew.", [(25.0, ""), (2.0, "")]),
        ("The vote was 7 to 2 in favour.", [(7.0, ""), (2.0, "")]),
        ("A file holds 64 MB; it took a 12-week course.", [(64.0, "megabyte"), (12.0, "week")]),
        ("Il y a 1 234 567 habitants dans la ville.", [(1234567.0, "")]),
        ("The course took two and a half hours, the test 1½.", [(2.5, "hour"), (1.5, "")]),
        ("Die Fahrt dauert anderthalb Stunden.", [(1.5, "hour")]),
        ("Transcurrieron unos quince años entre una obra y la otra.", [(15.0, "year")]),
        ("It cost 5.60 EUR per group, or USD 6.10.", [(5.6, "currency:EUR"), (6.1, "currency:USD")]),
        ("One third of the members and a quarter of the guests left.", [(33.3, "percent"), (25.0, "percent")]),
        ("Durée : 2 h 15, avec entracte.", [(135.0, "minute")]),
        ("Le train part à 2 h 15.", [(135.0, "clock")]),
        ("Tre quarti dei soci erano presenti.", [(75.0, "percent")]),
        ("It was a double-blind trial of half an hour.", [(0.5, "hour")]),
        ("Half a dozen of the pupils, two dozen parents and a dozen cups.", [(6.0, ""), (24.0, ""), (12.0, "cup")]),
        ("The walk takes a quarter of an hour.", [(15.0, "minute")]),
        ("A quarter of the members left.", [(25.0, "percent")]),
        ("Enfournez pendant un quart d'heure, puis une heure et demie.", [(15.0, "minute"), (1.5, "hour")]),
        ("La visita dura tres cuartos de hora, no una hora y media.", [(45.0, "minute"), (1.5, "hour")]),
        ("La visita dura un quarto d'ora, con mezza dozzina di soste.", [(15.0, "minute"), (6.0, "")]),
        ("A visita dura um quarto de hora e meia dúzia de fotos.", [(15.0, "minute"), (6.0, "")]),
        ("De wandeling duurt drie kwartier en niet een half uur.", [(45.0, "minute"), (0.5, "hour")]),
        ("Das ist ein halbes Dutzend von den Kindern.", [(6.0, "")]),
        ("所要時間は高速船で35分、普通船で1時間20分です。", [(35.0, "minute"), (4 / 3, "hour")]),
        ("女将は十七年間、店を営んでいました。", [(17.0, "year")]),
        ("船は3時間15分で島に着きます。", [(3.25, "hour")]),
        ("这个月用了240千瓦时的电。", [(240.0, "kilowatt_hour")]),
        ("Het gemaal is geopend van 10.30 tot 15.00 uur.", [(630.0, "clock"), (900.0, "clock")]),
        ("Open van half elf 's ochtends tot drie uur 's middags.", [(630.0, "clock"), (900.0, "clock")]),
        ("Practice lasts for one and a half hours.", [(1.5, "hour")]),
        ("Es sind drei: ein Eimer neben der Tür und eine Decke.", [(3.0, "")]),
        (
            "Ouvert de 9 h à 21 h 30; le train part à 8 h et met 2 h.",
            [(540.0, "clock"), (1290.0, "clock"), (480.0, "clock"), (2.0, "hour")],
        ),
        ("Les autres demandent de 8 à 13 h.", [(8.0, "hour"), (13.0, "hour")]),
        ("On peut y travailler pendant 12 heures et demie.", [(750.0, "minute")]),
        ("I fuochi cominciano alle 23 e durano un quarto d'ora.", [(1380.0, "clock"), (15.0, "minute")]),
        ("Die Gruppe trifft sich alle 14 Tage.", [(14.0, "day")]),
        ("The notes appear on the following day.", [(1.0, "day")]),
        ("As notas saem no dia seguinte.", [(1.0, "day")]),
        ("No figure is here.", []),
    ],
)
def test_numbers_are_parsed_with_their_units(text: str, values: list[tuple[float, str]]) -> None:
    assert [(figure.number, figure.unit) for figure in read(text)] == values


@pytest.mark.parametrize(
    "code", ["en", "de", "fr", "es", "it", "pt", "nl", "da", "sv", "pl", "cs", "ru", "uk", "ja", "ko"]
)
@given(day=st.dates(min_value=date(1800, 1, 1), max_value=date(2099, 12, 31)))
def test_a_long_date_is_parsed_in_every_language(code: str, day: date) -> None:
    (figure,) = figures(format_date(day, "long", locale=code), code)
    assert figure.date == Date(year=day.year, month=day.month, day=day.day)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Dal 1° luglio la guida è sua.", [(7, 1)]),
        ("Aperto dal 1° al 15 agosto.", [(8, 1), (8, 15)]),
        ("Wir fahren vom 12. bis zum 16. Mai.", [(5, 12), (5, 16)]),
        ("Abierto desde el 1.º de julio y el 1º de agosto.", [(7, 1), (8, 1)]),
    ],
)
def test_days_of_a_month_are_dates(text: str, days: list[tuple[int, int]]) -> None:
    assert [(one.date.month, one.date.day) for one in read(text) if one.date is not None] == days


@pytest.mark.parametrize(
    ("one", "other", "stands"),
    [
        ("250 mg", "0.25 g", True),
        ("about 35 km", "22 miles", True),
        ("36 km", "22 miles", False),
        ("3 weeks", "21 days", True),
        ("4.5 m", "4.5 tonnes", False),
        ("1912", "4 May 1912", True),
        ("May 1912", "4 May 1912", True),
        ("5 May 1912", "May 1912", False),
        ("14 September 2023", "2023-09-14", True),
        ("about 1,200", "1,266", False),
        ("about 1,200", "1,187", True),
        ("1,200", "1,187", False),
        ("3200", "3.200", True),
        ("15 %", "15", True),
    ],
)
def test_one_figure_may_be_contained_in_others(one: str, other: str, stands: bool) -> None:
    (figure,) = read(one)
    assert stands_in(figure, read(other)) is stands


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("It closes at a quarter to eleven in the evening.", (1365.0,)),
        ("The guards change at half past nine.", (570.0, 1290.0)),
        ("The gates open at noon.", (720.0,)),
        ("Die Sitzung beginnt um halb drei.", (150.0, 870.0)),
        ("La visita termina a las once menos cuarto de la noche.", (1365.0,)),
        ("L'autobus parte dalla stazione alle 7.25 ogni giorno.", (445.0,)),
        ("最終便は午後6時45分に島に着きます。", (1125.0,)),
        ("营业厅下午3点半关门。", (930.0,)),
        ("因雷击停电,14:20断电。", (860.0,)),
    ],
)
def test_times_of_day_are_read_in_words_and_signs(text: str, minutes: tuple[float, ...]) -> None:
    assert [figure.numbers for figure in read(text) if figure.unit == "clock"] == [minutes]


def test_a_duration_of_hours_and_minutes_is_no_time_of_day() -> None:
    (found,) = read("They sat for 2 h 25 min.")
    assert found.unit == "hour"


@given(st.text(max_size=80))
def test_figures_have_ordered_spans_in_the_text(text: str) -> None:
    position = 0
    for figure in figures(text, "en"):
        assert position <= figure.start < figure.end <= len(text)
        assert figure.numbers or figure.date
        position = figure.end


@given(st.floats(min_value=0.001, max_value=1e6))
def test_a_unit_conversion_round_trips(number: float) -> None:
    there = in_unit(number, "mile", "kilometer")
    assert there is not None
    assert in_unit(there, "kilometer", "mile") == pytest.approx(number)
