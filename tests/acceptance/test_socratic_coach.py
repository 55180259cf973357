"""The coach that does not answer: it asks, within its level's limits, and code holds it to that."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.doors import COURSE, Fact, Model, bench, marag, printed, talk

ASKED = "What turns, the Sun or the Earth?"
LECTURE = (
    "A sundial works because the Earth turns once a day, so that the Sun seems to cross the sky and the shadow follows "
    "it over the dial, fifteen degrees an hour, which is why the hour lines lie as they do. I hope that this helps."
)
WHY = "Why does the shadow move over the dial?"
ANYTHING = ("--set", "SCOPE_THRESHOLD=-1")


def reply(text: str, *, right: bool = False, answer: str = "") -> Mapping[str, Any]:
    """What the model says as a coach."""
    return {"reply": text, "answer": answer, "acknowledges_right_answer": right}


@pytest.fixture(autouse=True)
def course(data: Path, model: Model) -> None:
    """A small course of sundials, and a model that asks."""
    marag("ingest", str(COURSE), "--corpus", "course")
    model.coach = [reply(ASKED)]


def coach(*lines: str, level: int = 1, words: tuple[str, ...] = ANYTHING) -> str:
    """What the learner sees."""
    return talk(*lines, words=("--corpus", "course", "--mode", "coach", "--level", str(level), *words))


def calls(model: Model) -> list[str]:
    """The prompts of the coach."""
    return [prompt for prompt in model.prompts if "acknowledges_right_answer" in prompt]


def last_reply(text: str) -> str:
    """The last line that ends with a question mark, as the learner sees it."""
    questions: list[str] = re.findall(r"[^.!?]*\?", text.partition("This session")[0])
    return questions[-1].strip()


def celebration(text: str, said: str) -> str:
    """What follows the coach's last reply, before the session ends."""
    return text.rpartition(said)[2].partition("This session")[0].strip()


def test_the_coach_asks_in_place_of_answering() -> None:
    assert ASKED in coach(WHY)


@pytest.mark.parametrize(("level", "limit"), [(1, 160), (2, 120), (3, 80)])
def test_a_reply_has_at_most_160_120_80_characters_and_ends_with_a_question(
    model: Model, level: int, limit: int
) -> None:
    model.coach = [reply(LECTURE)]
    told = coach(WHY, level=level)
    assert "I hope that this helps" not in told
    assert len(last_reply(told)) <= limit


def test_a_reply_that_breaks_the_rules_is_regenerated_exactly_once(model: Model) -> None:
    model.coach = [reply(LECTURE), reply(ASKED)]
    assert ASKED in coach(WHY)
    assert len(calls(model)) == 2


def test_a_reply_that_fails_twice_becomes_a_question_of_the_level(model: Model) -> None:
    model.coach = [reply(LECTURE)]
    told = coach(WHY)
    assert len(calls(model)) == 2
    assert LECTURE[:40] not in told
    assert last_reply(told).endswith("?")


def test_a_question_off_the_subject_is_rejected_with_its_score(model: Model) -> None:
    told = coach("Which football club won the cup in 1998, and who scored?", words=("--set", "SCOPE_THRESHOLD=0.9"))
    assert calls(model) == []
    assert re.search(r"-?0\.\d+", told)


def test_short_conversational_input_passes_the_scope_guard(model: Model) -> None:
    coach(WHY, "yes, a hint", words=ANYTHING)
    assert len(calls(model)) == 2
    model.coach = [reply(ASKED)]
    coach("yes", words=("--set", "SCOPE_THRESHOLD=0.9"))
    assert len(calls(model)) == 3


def test_giving_up_gets_the_core_hint_once(model: Model) -> None:
    hint = "The stick throws it while the Earth turns."
    model.coach = [reply(ASKED), reply(hint), reply(ASKED)]
    told = coach(WHY, "I don't know.", "...", words=ANYTHING)
    assert hint in told
    assert told.count(hint) == 1


def test_to_have_passed_an_exam_is_no_surrender(model: Model) -> None:
    hint = "The stick throws it while the Earth turns."
    model.coach = [reply(ASKED), reply(hint), reply(ASKED)]
    told = coach(WHY, "I passed the exam on sundials, so it is the Earth that turns.", words=ANYTHING)
    assert hint not in told


def test_the_right_answer_is_celebrated(model: Model) -> None:
    model.coach = [reply(ASKED), reply("That's right. What follows from it?", right=True)]
    assert celebration(coach(WHY, "The Earth turns."), "What follows from it?")
    model.coach = [reply(ASKED), reply("Not correct. What else could turn?")]
    assert not celebration(coach(WHY, "The Sun turns."), "What else could turn?")


def test_the_teacher_explains_from_the_evidence(model: Model) -> None:
    said = "A sundial has two parts, the gnomon and the dial [n]."
    model.facts = [Fact(asked="sundial", quote="A sundial has two parts", said=said, short="the gnomon and the dial")]
    talk("What are the two parts of a sundial?", words=("--corpus", "course", "--mode", "teacher", *ANYTHING))
    assert any("learner" in prompt for prompt in model.prompts)
    assert calls(model) == []


def test_the_first_reply_after_the_teacher_obeys_the_coach(model: Model) -> None:
    model.coach = [reply(LECTURE)]
    told = talk("What is a gnomon?", "/mode coach", WHY, words=("--corpus", "course", "--mode", "teacher", *ANYTHING))
    assert LECTURE[:40] not in told
    assert len(last_reply(told)) <= 160


def test_a_change_of_mode_is_told_to_the_user_and_not_to_the_model(model: Model) -> None:
    told = talk("/mode coach", WHY, words=("--corpus", "course", *ANYTHING))
    assert "coach" in told
    assert not any("/mode" in prompt for prompt in model.prompts)


def test_the_system_prompt_has_style_evidence_and_summary_in_layers(model: Model) -> None:
    coach(WHY, "The Earth turns.")
    system = next(message for message in reversed(model.bodies[-1]["messages"]) if message["role"] == "system")
    assert "<passage" in system["content"]
    assert "160" in system["content"]
    assert ASKED in calls(model)[-1]


def test_front_matter_gives_topic_and_level_of_a_lesson() -> None:
    told = coach("/topic")
    assert "sundials" in told
    assert "time" in told


def test_a_topic_limits_the_coach(model: Model) -> None:
    coach("/topic sundials", WHY)
    (prompt,) = calls(model)
    assert "Dial time and clock time" not in prompt


def test_phrases_and_levels_are_files_that_a_user_can_replace(tmp_path: Path) -> None:
    (tmp_path / "coach").mkdir()
    (tmp_path / "coach" / "rhymes.yaml").write_text("a: b\n")
    refused = marag(
        "chat", "--corpus", "course", "--mode", "coach", "--set", f"COACH_DIR={tmp_path / 'coach'}", input="Hm\n"
    )
    assert refused.exit_code == 2
    assert "rhymes" in refused.stderr


@pytest.mark.slow
def test_the_measurement_of_the_coach_prints_violations_before_and_after() -> None:
    told = printed(bench("socratic", "--json", ENCODER="", MONITOR_ENCODER=""))
    assert told["violations_before"] > 0
    assert told["violations_after"] == 0
    assert "retries" in told
