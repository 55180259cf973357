"""A looked-up value must occur in a passage that mentions its entity; otherwise the fact is open."""

import pytest

from meta_agent_rag.agent.derivation.look_up import Text, supported

TEXTS = (
    Text(id="film", text="Salt Road\nSalt Road is a 1952 film that Mira Holt directed. It has four reels."),
    Text(id="life", text="Mira Holt\nMira Holt (8 December 1931 - 2 May 1990) was born in Oslo."),
    Text(id="other", text="Bergen\nBergen is a city. Karl Lutz lived there."),
    Text(id="region", text="Paris\nParis lies in France. It has 11 parks, and was renewed in 2018."),
    Text(id="work", text="Ada Roth\nTin was mined there. Ada Roth mined tin."),
)


@pytest.mark.parametrize(
    ("fact", "entity", "value", "passage"),
    [
        ("Who directed Salt Road?", "Salt Road", "Mira Holt", "film"),
        ("When was Mira Holt born?", "Mira Holt", "December 8, 1931", "life"),
        ("How many reels does Salt Road have?", "Salt Road", "4", "film"),
        ("Is Salt Road a film?", "Salt Road", "yes", "film"),
        ("Where did Karl Lutz live?", "Karl Lutz", "Bergen", "other"),
        ("What did Ada Roth mine?", "Ada Roth", "tin", "work"),
    ],
)
def test_a_supported_value_is_accepted(fact: str, entity: str, value: str, passage: str) -> None:
    found = supported(fact, entity, value, TEXTS)
    assert (found.fault, found.passage_id) == (None, passage)


@pytest.mark.parametrize(
    ("fact", "entity", "value", "reason"),
    [
        ("Where was Mira Holt born?", "Mira Holt", "8 December 1931", "kind"),
        ("Who directed Salt Road?", "Salt Road", "Salt Road", "what the fact is about"),
        ("Who directed Salt Road?", "Salt Road", "Ann Bode", "occurs in no passage"),
        ("Where was Mira Holt born?", "Mira Holt", "Bergen", "mentions"),
        ("Where was Mira Holt born?", "Mira Holt", "NOT FOUND", "no passage gives it"),
        ("Which mission visited Paris?", "Paris", "Apollo 11", "occurs in no passage"),
        ("Which games did Paris hold?", "Paris", "2018 Winter Olympics", "occurs in no passage"),
        ("Where was Paris Hilton born?", "Paris Hilton", "France", "no passage that gives"),
        ("Is Blue Hill a film?", "Blue Hill", "yes", "no passage mentions"),
    ],
)
def test_an_unsupported_value_leaves_the_fact_open(fact: str, entity: str, value: str, reason: str) -> None:
    fault = supported(fact, entity, value, TEXTS).fault
    assert fault is not None
    assert reason in fault
