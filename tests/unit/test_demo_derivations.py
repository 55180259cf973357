"""Derivations and votes as displayed."""

from meta_agent_rag.agent.derivation import Chain, Derivation, Fact, Plan
from meta_agent_rag.agent.routes import Ballot, Vote
from meta_agent_rag.demo.cards import bars, chain
from meta_agent_rag.retrieval.passage import Found, Passage

PLAN = Plan(
    operator="earliest",
    chains=(
        Chain(of="Blue Hill", facts=("Who directed Blue Hill?", "When did # die?")),
        Chain(of="Grey Water", facts=("Who directed Grey Water?", "When did # die?")),
    ),
)


def fact(place: int, index: int, value: str, **fields: object) -> Fact:
    known: dict[str, object] = {"passage_id": "blue-hill-0123456789ab", "sentence": "It is by <Ann> Bode.", **fields}
    return Fact(chain=place, index=index, asked=f"Fact {place}.{index}?", entity="", value=value, **known)  # type: ignore[arg-type]


DERIVATION = Derivation(
    plan=PLAN,
    facts=(fact(0, 0, "Ann Bode"), fact(0, 1, "1990"), fact(1, 0, "", open="no passage gives it")),
    answer="Grey Water",
    because="1981 is earlier than 1990: Grey Water",
)


def test_chains_are_shown_side_by_side_with_the_passage_of_each_fact() -> None:
    shown = chain(DERIVATION, {})
    assert shown.count("<ol>") == 2
    assert "blue hill: “It is by &lt;Ann&gt; Bode.”" in shown
    titled = Found(
        passage=Passage(id="blue-hill-0123456789ab", doc_id="b", title="Blue Hill (film)", text=""), score=1.0
    )
    assert "Blue Hill (film): " in chain(DERIVATION, {titled.passage.id: titled})
    assert "1981 is earlier than 1990: Grey Water" in shown


def test_an_open_fact_is_shown_with_its_reason() -> None:
    assert '<li class="m-open-fact"><span>Fact 1.0?</span><strong>?</strong><small>open: no passage gives it' in chain(
        DERIVATION, {}
    )


def test_a_remembered_fact_is_labelled() -> None:
    remembered = Derivation(plan=PLAN, facts=(fact(0, 0, "Ann Bode", passage_id=None, from_memory=True),))
    assert "from the model's memory" in chain(remembered, {})
    assert "The facts give no answer." in chain(remembered, {})


def test_a_dropped_plan_states_the_reason() -> None:
    assert "it restates &lt;the&gt; question" in chain(Derivation(plan=None, dropped="it restates <the> question"), {})


def test_the_bars_of_the_elected_answer_are_highlighted() -> None:
    ballots = (
        Ballot(route="quoted_draft", short_answer="Blue Hill"),
        Ballot(route="derivation", short_answer="Grey <"),
    )
    shown = bars(Vote(elected="Grey <", route="derivation", share=0.6, ballots=ballots, support=(0.4, 0.6)))
    assert shown.count("m-elected") == 1
    assert "quoted draft: Blue Hill</span><span>40%" in shown
    assert "derivation: Grey &lt;</span><span>60%" in shown
