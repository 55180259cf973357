"""Only a clear mismatch of kind refuses an answer: right answers of unexpected forms pass, in several languages."""

import pytest

from meta_agent_rag.grounding.kinds.fitting import answers_in_kind

REPORTED = [
    ("When should I change the oil?", "every 10,000 km", "Change the oil every 10,000 km."),
    ("Who do I contact in an emergency?", "112", "In an emergency, contact 112."),
    ("Who do I contact in an emergency?", "112", "112."),
    (
        "How long should I roast the meat?",
        "until the core reaches 63 °C",
        "Roast the meat until the core reaches 63 °C.",
    ),
    ("How far did the army advance?", "to the Rhine", "The army advanced to the Rhine."),
    ("What is the name of the novel?", "1984", "The novel is called 1984."),
    ("What is the name of the novel?", "1984", "1984."),
    ("When must the brake pads be replaced?", "when thinner than 3 mm", "Replace the pads when thinner than 3 mm."),
    ("When did the alarm go off?", "at 90 °C", "The alarm went off at 90 °C."),
    (
        "When will the bonus be paid?",
        "once sales exceed 5 million euros",
        "It is paid once sales exceed 5 million euros.",
    ),
    ("How long ago was the mill built?", "in 1803", "The mill was built in 1803."),
    ("How fast did the fire spread?", "within minutes", "In 1803 the fire spread within minutes."),
    ("How much influence did he have?", "a great deal", "He had a great deal of influence."),
    ("How heavy is the traffic?", "light", "The traffic is light."),
    ("How far along is the project?", "in the design phase", "The project is in the design phase."),
    ("How many of the towers still stand?", "both", "Both towers still stood in 2021."),
    ("How many of the towers still stand?", "neither", "Neither tower stood in 2021."),
    ("How many of the towers still stand?", "both", "Both towers still stand."),
    ("Who hosted the Games in 1908?", "London", "The Games of 1908 were held in London."),
    ("Who issues the permit?", "City Hall", "The permit is issued at City Hall."),
    ("Whom should I call?", "0800 1234", "Call 0800 1234."),
    ("Wen soll ich anrufen?", "0800 1234", "Rufen Sie 0800 1234 an."),
    ("What is the name of the square?", "25 de Abril", "The square is called 25 de Abril."),
    ("Wann muss das Öl gewechselt werden?", "alle 10.000 km", "Das Öl muss alle 10.000 km gewechselt werden."),
    ("Does the ticket include the tower?", "yes", "Every visitor may climb to the lamp room."),
]
"""Right answers that were refused."""

UNSEEN = [
    (
        "When did the fuse blow?",
        "when the current exceeded 16 amperes",
        "It blew when the current exceeded 16 amperes.",
    ),
    ("When will the road be closed?", "as soon as 20 cm of snow lie", "It is closed as soon as 20 cm of snow lie."),
    ("When was the bridge closed?", "after the flood", "The bridge was closed after the flood."),
    ("When should I see a doctor?", "if the fever is above 39 °C", "See a doctor if the fever is above 39 °C."),
    ("Who answers complaints?", "Town Hall", "Complaints are answered at Town Hall."),
    ("Who won the cup in 1999?", "Leeds", "In 1999 the cup went to Leeds."),
    ("Who makes the lamp oil?", "Bren Refinery", "The lamp oil is made in Bren Refinery."),
    ("Who should I ring if the lift stops?", "4410", "Ring 4410 if the lift stops."),
    ("Who sings the song?", "The 1975", "The song is by The 1975."),
    ("How long must the dough rest?", "until it has doubled", "Let the dough rest until it has doubled."),
    ("How long is the warranty?", "2 years or 40,000 km", "The warranty runs for 2 years or 40,000 km."),
    ("How long may I run the pump?", "until the water falls below 20 cm", "Run it until the water falls below 20 cm."),
    ("How far can the crane reach?", "to the other bank", "The crane reaches to the other bank."),
    ("How far did the temperature fall?", "to -12 °C", "The temperature fell to -12 °C."),
    ("How heavy was the rain?", "40 mm in an hour", "40 mm of rain fell in an hour."),
    ("How heavy were the losses?", "2 million euros", "The losses came to 2 million euros."),
    ("How fast did prices rise?", "faster than wages", "Prices rose faster than wages."),
    ("How fast do the pups grow?", "by 1 kg a week", "The pups grow by 1 kg a week."),
    ("How much snow fell?", "up to the window sills", "The snow lay up to the window sills."),
    ("How much does membership cost?", "it depends on your income", "The fee depends on your income."),
    ("How many people came?", "hardly anyone", "Hardly anyone came."),
    ("How many rooms were sold?", "dozens", "Dozens of rooms were sold."),
    ("What was the name of her first novel?", "12 October", "Her first novel was 12 October."),
    ("Does the ferry take bicycles to the island?", "yes", "There is a rack for two-wheelers on the car deck."),
    ("Is breakfast part of the price?", "yes", "Guests eat in the morning at no extra charge."),
    ("Wann muss ich zum Arzt?", "bei Fieber über 39 °C", "Gehen Sie bei Fieber über 39 °C zum Arzt."),
    ("Wie lange muss der Braten garen?", "bis der Kern 63 °C hat", "Der Braten gart, bis der Kern 63 °C hat."),
    ("Wen rufe ich im Notfall an?", "112", "Rufen Sie im Notfall 112 an."),
    ("Wie viel Wasser braucht die Pflanze?", "so viel, dass die Erde feucht bleibt", "Die Erde soll feucht bleiben."),
    ("Wer richtete die Spiele 1936 aus?", "Berlin", "Die Spiele fanden 1936 in Berlin statt."),
    ("Quand faut-il changer l'huile ?", "tous les 10 000 km", "Il faut changer l'huile tous les 10 000 km."),
    ("Combien de temps faut-il cuire le rôti ?", "jusqu'à 63 °C à cœur", "Cuire le rôti jusqu'à 63 °C à cœur."),
    ("Qui a délivré le permis ?", "la mairie", "Le permis a été délivré en mairie."),
    ("¿Cuándo hay que cambiar el aceite?", "cada 10.000 km", "El aceite se cambia cada 10.000 km."),
    ("¿Quién organizó los Juegos?", "Barcelona", "Los Juegos se celebraron en Barcelona."),
    ("Quando va cambiato l'olio?", "ogni 10.000 km", "L'olio va cambiato ogni 10.000 km."),
    ("Quando se deve trocar o óleo?", "a cada 10.000 km", "O óleo deve ser trocado a cada 10.000 km."),
    ("Wanneer moet de olie worden ververst?", "om de 10.000 km", "De olie moet om de 10.000 km worden ververst."),
    ("Wie moet ik bellen?", "0900 8844", "Bel 0900 8844."),
    ("オイルはいつ交換しますか。", "10,000 kmごと", "オイルは10,000 kmごとに交換します。"),
]
"""Right answers written before the rules were loosened."""

AFTERWARDS = [
    (
        "When should the filter be cleaned?",
        "at a pressure drop of 3 bar",
        "Clean the filter at a pressure drop of 3 bar.",
    ),
    ("When was the kiln opened?", "at 60 °C", "In 1990 the kiln was opened at 60 °C."),
    ("When did she retire?", "aged 65", "She retired aged 65."),
    ("How long did the siege last?", "most of a year", "The siege lasted most of a year."),
    ("How long should I simmer the sauce?", "till it has lost 200 ml", "Simmer it till it has lost 200 ml."),
    ("How long do I walk?", "about 5 km", "Walk about 5 km."),
    ("Who is the sponsor?", "3M", "The sponsor is 3M."),
    ("Who do I call?", "+44 20 7946 0018", "Call +44 20 7946 0018."),
    ("Who is in charge of the archive?", "Room 12", "Room 12 is in charge."),
    ("Who provides the shuttle?", "the Hotel in Bren", "The shuttle is provided by the Hotel in Bren."),
    ("How much was the price cut?", "by 10 %", "The price was cut by 10 %."),
    ("How much does it weigh?", "as much as a car", "It weighs as much as a car."),
    ("How old is the bridge?", "built in 1803", "It was built in 1803."),
    ("How tall is the tower?", "12 floors", "The tower has 12 floors."),
    ("How far is the station?", "next door", "The station is next door."),
    ("How many members voted?", "all but one", "All but one voted."),
    ("Was the harbour dredged?", "no", "Silt has filled the basin since 1950."),
    ("Wie weit ist der Umbau?", "zu 80 % fertig", "Der Umbau ist zu 80 % fertig."),
    ("Wann schaltet die Heizung ab?", "ab 22 °C", "Die Heizung schaltet ab 22 °C ab."),
    ("Combien coûte l'entrée ?", "selon l'âge", "Le prix dépend de l'âge."),
    ("¿Cuánto cuesta la entrada?", "la voluntad", "Cada uno paga lo que quiere."),
    ("Quanto tempo deve cuocere?", "fino a 70 °C al cuore", "Deve cuocere fino a 70 °C al cuore."),
    ("Hoe lang moet het deeg rijzen?", "tot het 5 cm hoog is", "Laat het rijzen tot het 5 cm hoog is."),
    ("Quem emite a licença?", "a Câmara", "A licença é emitida na Câmara."),
    ("When does the premium rise?", "above 10 claims", "It rises above 10 claims."),
]
"""Right answers written after them; all passed at once."""

MILL, TIDE_MILL = "Who built the tide mill of Port Sellan?", "The tide mill was built in 1803"
RAILWAY, MAYOR = "Did the council build the railway?", "The council had a mayor."
OSPREY, LAUNCH = "How much does the Osprey cost?", "The Osprey was launched on 9 October 2019"
CLEAR = [
    (MILL, "1803", f"{TIDE_MILL}."),
    (MILL, TIDE_MILL, f"{TIDE_MILL}."),
    (OSPREY, LAUNCH, f"{LAUNCH}."),
    ("How long does the ferry crossing take?", "12 °C", "The water has 12 °C."),
]
"""Of another kind, whatever a critic says."""
DOUBTFUL = [
    (MILL, "Port Sellan", "The tide mill was built in Port Sellan."),
    (OSPREY, "an aircraft", "The Osprey is an aircraft."),
    ("What was the name of the ship?", "1803", "The ship was built in 1803."),
    (RAILWAY, "no", "The state paid for all tracks."),
]
"""Wrong answers that look like right ones: a town may have built a mill; left to the critic."""
UNLIKELY = [
    (MILL, "built in Port Sellan", "The tide mill was built in Port Sellan."),
    (RAILWAY, "yes", MAYOR),
    (RAILWAY, "no", MAYOR),
]
"""Of the kind only if a critic says so."""


@pytest.mark.parametrize(("question", "short_answer", "claim"), REPORTED + UNSEEN + AFTERWARDS + DOUBTFUL)
def test_what_is_or_may_be_a_right_answer_passes(question: str, short_answer: str, claim: str) -> None:
    assert answers_in_kind(question, short_answer, [claim])


@pytest.mark.parametrize("answers", [None, True])
@pytest.mark.parametrize(("question", "short_answer", "claim"), CLEAR)
def test_no_critic_can_make_a_date_a_person(question: str, short_answer: str, claim: str, answers: bool | None) -> None:
    assert not answers_in_kind(question, short_answer, [claim], answers=answers)


@pytest.mark.parametrize(("question", "short_answer", "claim"), UNLIKELY)
def test_a_critic_decides_what_is_in_doubt(question: str, short_answer: str, claim: str) -> None:
    assert not answers_in_kind(question, short_answer, [claim])
    assert answers_in_kind(question, short_answer, [claim], answers=True)


def test_a_year_is_no_spring() -> None:
    assert not answers_in_kind("In which year did it open?", "springs", ["It uses springs."])
