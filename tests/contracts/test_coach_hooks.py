"""The contract of every coach hook and every level, whichever file they come from."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.coach import hooks
from meta_agent_rag.chat.coach.coach import obeys
from meta_agent_rag.chat.coach.hook import CoachDraft, IncomingMessage, PostHook, PreHook, RuleFinding, Ruling
from meta_agent_rag.chat.coach.hooks import discover_hooks, in_order
from meta_agent_rag.chat.coach.levels import Level, levels
from meta_agent_rag.chat.history import History
from meta_agent_rag.errors import DuplicateNameError

FOUND = discover_hooks()
PRE, POST = FOUND.before, FOUND.after
TEXT = st.text(max_size=400) | st.sampled_from(["I don't know", "わからない", "Correct!", "...", "Why?", "a" * 500])


def name_of(hook: PreHook | PostHook) -> str:
    return hook.name


def test_every_file_defines_the_hook_it_is_named_after_in_order_of_priority() -> None:
    (folder,) = hooks.__path__
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files == {*map(name_of, PRE), *map(name_of, POST)}, "name a file after its hook"
    # a stuck learner is not told to stay on topic
    assert [*map(name_of, PRE)].index("deadlock_breaker") < [*map(name_of, PRE)].index("scope_guard")
    with pytest.raises(DuplicateNameError, match=repr(PRE[0].name)):
        in_order([*PRE, PRE[0]])


@pytest.mark.parametrize("hook", PRE, ids=name_of)
@given(message=TEXT, before=TEXT, answer=TEXT)
def test_a_pre_hook_returns_a_ruling_for_any_text(hook: PreHook, message: str, before: str, answer: str) -> None:
    history = History().with_exchange(question=before, answer=answer, standalone=before, mode="coach")
    for known in (History(), history):
        incoming = IncomingMessage(message=message, history=known, level=levels()[1])
        ruling = asyncio.run(hook.before(incoming))
        assert isinstance(ruling, Ruling), "return a Ruling from `before`"
        assert not (ruling.refusal and ruling.emergency), "an emergency is answered, not refused"


@pytest.mark.parametrize("hook", POST, ids=name_of)
@given(text=TEXT, answer=TEXT, level=st.sampled_from(list(levels())), field=st.booleans(), is_hint=st.booleans())
def test_a_post_hook_is_deterministic_for_any_text(
    *, hook: PostHook, text: str, answer: str, level: int, field: bool, is_hint: bool
) -> None:
    draft_of = CoachDraft(
        text=text, message="", level=levels()[level], acknowledges=field, is_hint=is_hint, answers=[answer]
    )
    finding = hook.after(draft_of)
    assert isinstance(finding, RuleFinding), "return a RuleFinding from `after`"
    assert hook.after(draft_of) == finding, "let `after` depend on the draft alone"


@pytest.mark.parametrize("level", levels().values(), ids=lambda level: level.name)
def test_every_template_obeys_the_rules_of_its_level(level: Level) -> None:
    templates = level.templates
    assert {"en", "ja"} <= set(templates)
    for language, questions in templates.items():
        assert len(questions) >= 3, "give at least three questions in each language"
        for turn, question in enumerate(questions):
            assert obeys(question, level.number), "shorten the question, and end it with a question mark"
            assert level.questions(language, turn + len(questions))[0] == question
    assert level.questions("fr", 0) == level.questions("en", 0)
