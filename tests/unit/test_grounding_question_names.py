"""Full names in a question that no passage contains."""

import pytest

from meta_agent_rag.grounding.question_names import full_names, unknown_names
from meta_agent_rag.retrieval.passage import Passage


def passage(title: str, text: str) -> Passage:
    return Passage(id=title, doc_id=title, title=title, text=text)


HARBOUR = (
    passage("Bernard of Vantry", "Bernard of Vantry founded the abbey of Dunnaigh. Bernard died there in 1117."),
    passage("Henry of Kelmouth", "Henry of Kelmouth was the duke of the town and of its harbour."),
    passage(
        "Salt Road (film)",
        "Salt Road is a film of 1962 by Mr. Lindqvist, for the Northern Film Board. Karlheinz Tanaka repairs lenses.",
    ),
    passage(
        "Harbour Authority",
        "The HPA collects the fees of the port in TideLog. Acme supplies the cranes of the harbour.",
    ),
)


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("Who is the grandfather of Bernard of Kelmouth?", ("Bernard of Kelmouth",)),
        ("Who is Bernard Of Kelmouth's paternal grandfather?", ("Bernard Of Kelmouth",)),
        ("When did Bernard of Vantry die?", ()),
        ("When did Bernárd of Vantry die?", ()),
        ("Did Henry Kelmouth rule the town?", ()),
        ("When did Bernhard of Vantrey die?", ()),  # misspelt
        ("Who directed Salt Road (1962 Film) and who Salt Mine?", ("Salt Mine",)),
        ("Which film is older, Salt Mine or Tin Drum?", ("Salt Mine", "Tin Drum")),
        ("Was Greta Lindqvist the director of Salt Road?", ()),  # the surname alone may be hers
        ("Was Bob Lindqvist the director of Salt Road?", ()),
        ("What does Karl Tanaka repair?", ()),  # "Karl" may be short for "Karlheinz"
        ("What does Henry of Tanaka repair?", ("Henry of Tanaka",)),
        ("I am Tom Becker from sales; how many cranes are there?", ()),
        ("Does the port have 5 GHz Wi-Fi?", ()),
        ("Was Greta Bernard the director of Salt Road?", ("Greta Bernard",)),
        ("Who directed Salt Mine or Salt Harbour Fees?", ("Salt Mine", "Salt Harbour Fees")),
        ("How is the Tide Log kept?", ()),
        ("Where does Tide Log keep its entries?", ()),  # "TideLog"
        ("What does Harbour Port Authority collect?", ()),  # its initials
        ("What does Acme Robotics supply?", ()),
        ("What did Royal Northern Film Board pay for?", ()),  # one word of four is left out
        ("What does the Royal Mining Board pay for?", ()),  # a description, after an article
        ("What does Chapter Two say about the harbour?", ()),
        ("How is the harbour called in New Zealand?", ()),
        ("How old is the harbour?", ()),
        ("WHO IS THE GRANDFATHER OF BERNARD OF KELMOUTH?", ()),
        ("What Is The Refund Policy Of Tom Miller?", ()),
        ("Compare Tom Miller with the duke of the town.", ()),  # "Compare" may be part of the name
        ("Wer war der Großvater von Bernard Kelmouth, und was hat Tom Miller gebaut?", ()),
        ("¿Quién fue el abuelo de Bernardo Kelmouth y qué construyó Tomás Miller?", ()),
        ("", ()),
    ],
)
def test_full_names_found_in_no_passage_are_reported(question: str, unknown: tuple[str, ...]) -> None:
    assert unknown_names(question, HARBOUR) == unknown


def test_passages_in_another_language_are_ignored() -> None:
    french = (passage("Le port", "Le port de la ville a été construit par le duc au siècle dernier."),)
    assert unknown_names("When did Tom Miller build the harbour of the town?", french) == ()


def test_without_passages_every_name_is_unknown() -> None:
    assert unknown_names("When was the film Salt Road made?", ()) == ("Salt Road",)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Are Ada Roth and Bo Lind both painters?", ("Ada Roth", "Bo Lind")),
        ("Who wrote The Man Who Knew Too Much?", ("The Man Who Knew Too Much",)),
        ("Is J. R. Roth older than St. John of the Cross?", ("St. John of the Cross",)),
        ("Roth was born. Who painted Salt Road?", ("Salt Road",)),
        ("Ada Roth's film is older than Salt Road, is it?", ("Salt Road",)),
    ],
)
def test_the_full_names_of_a_question_are_extracted(question: str, names: tuple[str, ...]) -> None:
    assert full_names(question) == names
