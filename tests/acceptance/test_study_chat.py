"""`marag chat`: a study companion that understands follow-ups, remembers, resumes, and never ends on an error."""

import re
from pathlib import Path

from tests.acceptance.conftest import IMPELLER, MILL, PUMP
from tests.acceptance.doors import Fact, Model, marag, talk

LIBRARY = ("--corpus", "library")
FACTS = (
    Fact(
        asked="Arden pump deliver",
        quote=PUMP,
        said="The Arden pump delivers 40 litres a minute [n].",
        short="40 litres a minute",
    ),
    Fact(asked="impeller", quote=IMPELLER, said="Its impeller is made of bronze [n].", short="bronze"),
    Fact(asked="built the Weir Mill", quote=MILL, said="Ada Lind built the Weir Mill [n].", short="Ada Lind"),
    Fact(asked="When was the Weir Mill", quote=MILL, said="The Weir Mill was built in 1912 [n].", short="1912"),
)
BUILDER = "Who built the Weir Mill?"
PUMPED = "How much does the Arden pump deliver?"


def test_a_follow_up_becomes_a_standalone_question(model: Model) -> None:
    model.facts, model.rewrites = FACTS, {"When was it built?": "When was the Weir Mill built?"}
    told = talk(BUILDER, "When was it built?", words=LIBRARY)
    assert "Ada Lind built the Weir Mill [Mills" in told
    assert "The Weir Mill was built in 1912 [Mills" in told


def test_the_first_turn_needs_no_rewriting(model: Model) -> None:
    model.facts = FACTS
    talk(BUILDER, words=LIBRARY)
    assert not any("Last message:" in prompt for prompt in model.prompts)


def test_an_empty_rewrite_falls_back_to_the_question(model: Model) -> None:
    model.facts, model.rewrites = FACTS, {"And what is its impeller made of?": ""}
    told = talk(PUMPED, "And what is its impeller made of?", words=LIBRARY)
    assert "bronze [Pumps, p.2]" in told


def test_a_pleasantry_retrieves_nothing(model: Model) -> None:
    assert "You are welcome" in talk("Thank you very much!", words=LIBRARY)
    assert model.bodies == []


def test_an_off_topic_request_is_declined(model: Model) -> None:
    told = talk("Write me a poem about the sea.", words=LIBRARY)
    assert "I only answer questions about the documents" in told
    assert model.bodies == []


def test_what_have_we_discussed_is_answered_from_the_conversation(model: Model) -> None:
    model.facts = FACTS
    told = talk(BUILDER, "What have we discussed?", words=LIBRARY)
    assert told.count(BUILDER) >= 1


def test_the_documents_are_listed_on_request(model: Model) -> None:
    told = talk("Which documents do you have?", words=LIBRARY)
    assert "Harbour rules" in told
    assert "Rivers of Europe" in told
    assert model.bodies == []


def test_a_question_names_its_document_with_an_at_sign(model: Model) -> None:
    model.facts = FACTS
    talk("@Mills Who built the Weir Mill?", words=LIBRARY)
    assert any(MILL in prompt for prompt in model.prompts)
    assert not any(PUMP in prompt for prompt in model.prompts)


def test_a_provider_error_ends_the_turn_and_not_the_session(model: Model) -> None:
    model.facts, model.status = FACTS, 500
    told = talk(BUILDER, "/history", words=LIBRARY)
    assert "Ada Lind" not in told
    assert "This session" in told


def test_a_failed_turn_is_not_remembered(model: Model) -> None:
    model.status = 500
    told = talk(BUILDER, "/history", words=LIBRARY)
    assert f"1. {BUILDER}" not in told


def test_a_session_resumes_by_name(model: Model) -> None:
    model.facts = FACTS
    talk(BUILDER, words=(*LIBRARY, "--session", "evening"))
    told = talk("/history", words=("--session", "evening"))
    assert f"1. {BUILDER}" in told
    assert "evening" in marag("sessions", "list").stdout


def test_sessions_are_renamed_and_deleted(model: Model) -> None:
    model.facts = FACTS
    talk(BUILDER, words=(*LIBRARY, "--session", "evening"))
    assert marag("sessions", "rename", "evening", "morning").exit_code == 0
    assert "morning" in marag("sessions", "list").stdout
    assert marag("sessions", "delete", "morning", "--yes").exit_code == 0
    assert "morning" not in marag("sessions", "list").stdout


def test_twenty_turns_cost_four_compactions_at_most(model: Model) -> None:
    model.facts = FACTS
    talk(*[f"{BUILDER[:-1]}, question {number}?" for number in range(20)], words=LIBRARY)
    assert 1 <= sum("New summary:" in prompt for prompt in model.prompts) <= 4


def test_the_chat_commands_are_listed_by_help() -> None:
    told = talk("/help", words=LIBRARY)
    for command in (
        "/history",
        "/sources",
        "/topics",
        "/mode",
        "/level",
        "/model",
        "/cost",
        "/reset",
        "/save",
        "/quit",
    ):
        assert command in told


def test_sources_say_what_the_last_answer_cited(model: Model) -> None:
    model.facts = FACTS
    told = talk(PUMPED, "/sources", words=LIBRARY)
    assert re.search(r"1\. Pumps, page 1, characters 0-\d+", told)


def test_the_rounds_of_the_last_answer_can_be_traced(model: Model) -> None:
    model.facts = FACTS
    assert "Round 0 (chosen)" in talk(PUMPED, "/trace", words=LIBRARY)


def test_the_cost_of_the_session_is_shown_at_the_end(model: Model) -> None:
    model.facts = FACTS
    assert re.search(r"This session: \d+ calls, .* USD", talk(PUMPED, words=LIBRARY))


def test_save_writes_the_whole_conversation(model: Model) -> None:
    model.facts = FACTS
    talk(BUILDER, "Thanks!", "/save notes.md", words=LIBRARY)
    saved = Path("notes.md").read_text()
    assert BUILDER in saved
    assert "Ada Lind" in saved
    assert "Thanks!" in saved


def test_a_reset_forgets_the_conversation(model: Model) -> None:
    model.facts = FACTS
    told = talk(BUILDER, "/reset --yes", "/history", words=LIBRARY).partition("/reset")[2] or ""
    assert f"1. {BUILDER}" not in told


def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    assert "/history" in talk("/hisotry", words=LIBRARY)


def test_a_prompt_is_previewed_as_the_model_sees_it() -> None:
    assert "answerer" in marag("prompts", "list").stdout
    assert len(marag("prompts", "show", "answerer").stdout) > 200


def test_a_prompt_of_ones_own_with_an_unknown_section_is_named(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "answerer.yaml").write_text("instruction: Answer.\nrhyme: yes\n")
    refused = marag("prompts", "list", "--set", f"PROMPTS_DIR={tmp_path / 'prompts'}")
    assert refused.exit_code == 2
    assert "rhyme" in refused.stderr
