"""Recognising meanings beyond the word lists, and custom files of words."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from meta_agent_rag.chat.answers import reply_phrase
from meta_agent_rag.chat.coach.hooks.deadlock_breaker import PRE_HOOK as DEADLOCK
from meta_agent_rag.chat.coach.hooks.deadlock_breaker import gives_up
from meta_agent_rag.chat.coach.hooks.exit_trigger import POST_HOOK as EXIT
from meta_agent_rag.chat.coach.levels import levels
from meta_agent_rag.chat.coach.meanings import Meanings
from meta_agent_rag.chat.coach.phrases import coach_words
from meta_agent_rag.chat.coach.wording import statements
from meta_agent_rag.chat.own_files import check_files, files_of
from meta_agent_rag.errors import PromptError
from meta_agent_rag.prompts import check_prompts, prompt
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.coach import ASKED, coaching, reply
from tests.unit.test_coach_hooks import DistantScope, draft_of, incoming

TABLE = Path(__file__).parents[1] / "coaching" / "meanings.yaml"
MIN_RECOGNISED = {"gives_up": 0.7, "right": 0.5}
MAX_FALSE_POSITIVES = {"gives_up": 0.07, "right": 0.15}
"""Shares of held-out examples: a missed celebration is better than a wrong one."""


@cache
def measured(name: str) -> Sequence[str]:
    """The second of each pair: held-out examples that nothing was fitted on."""
    return [pair[1] for pair in yaml.safe_load(TABLE.read_text("utf-8"))[name]]


@cache
def meanings() -> Meanings:
    return Meanings(encoder=AsyncEncoder(load_encoder(Settings.load(), "all-MiniLM-L6-v2").encoder))


async def share(texts: Sequence[str], meaning: str) -> float:
    known = meanings()
    asked = [statements(text) if meaning == "right" else [text] for text in texts]
    return sum([await known.any_means(one, meaning) for one in asked]) / len(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize(("meaning", "opposite"), [("gives_up", "goes_on"), ("right", "not_right")])
async def test_meaning_is_recognised_where_word_lists_fail(meaning: str, opposite: str) -> None:
    assert await share(measured(meaning), meaning) >= MIN_RECOGNISED[meaning]
    assert await share(measured(opposite), meaning) <= MAX_FALSE_POSITIVES[meaning]


async def test_giving_up_is_recognised_by_meaning_alone() -> None:
    message = "stop asking me questions"
    assert not gives_up(message)
    asked = incoming(message)
    assert not (await DEADLOCK.before(asked)).emergency
    assert (await DEADLOCK.before(replace(asked, meanings=meanings(), scope=DistantScope()))).emergency
    for attempt in ("it points to the north", "Yes", "about 60 degrees", "maybe I give up too early"):
        assert not (await DEADLOCK.before(replace(incoming(attempt), meanings=meanings()))).emergency


def test_wording_overrides_a_reply_that_sounds_right() -> None:
    good = replace(draft_of("You're hitting the nail. What follows?"), sounds_right=True)
    assert EXIT.after(good).acknowledged
    assert not EXIT.after(replace(good, is_hint=True)).acknowledged
    assert not EXIT.after(replace(good, text="That is not right. What moves?")).acknowledged


async def test_any_encoder_works_and_any_text_is_accepted() -> None:
    known = Meanings(encoder=AsyncEncoder(HashEncoder()))
    assert await known.any_means(["I give up, tell me the answer."], "gives_up")
    assert not await known.any_means([], "right")
    assert not await known.any_means(["...", ""], "right")


def test_custom_files_of_words(tmp_path: Path) -> None:
    (tmp_path / "levels.yaml").write_text("3: {limit: 60, templates: {en: ['Really?']}}\n", "utf-8")
    (tmp_path / "replies.yaml").write_text("thanks: Any time.\n", "utf-8")
    (tmp_path / "words.yaml").write_text("mumbles: [[meh]]\nreasons: {no_question: ask something}\n", "utf-8")
    check_files(tmp_path)
    with files_of(tmp_path):
        assert levels()[3].limit == 60
        assert levels()[3].questions("en", 5)[0] == "Really?"
        assert levels()[3].name == "iron mask"
        assert reply_phrase("thanks") == "Any time."
        assert coach_words().mumbles == {"meh"}
    assert levels()[3].limit == 80
    assert reply_phrase("thanks") != "Any time."


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("levels", "4: {limit: 60}", "unknown entry 4"),
        ("levels", "3: {limits: 60}", "unknown entry 'limits'"),
        ("levels", "3: {limit: short}", "must be a whole number"),
        ("words", "surender: [pass]", "unknown entry 'surender'"),
        ("replies", "thanks: [a]", "must be a text"),
        ("replies", "a: [", "cannot be read"),
        ("level", "1: {}", "rename it to one of: levels.yaml"),
        ("meanings", "- a", "must map names"),
    ],
)
def test_a_misspelt_name_is_an_error(tmp_path: Path, name: str, text: str, named: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    with pytest.raises(PromptError, match=named):
        check_files(tmp_path)
    with pytest.raises(PromptError, match="is not a folder"):
        check_files(tmp_path / "gone")


def test_custom_strategies_and_misspelt_ones(tmp_path: Path) -> None:
    (tmp_path / "strategies.yaml").write_text("slowly: Take your time.\n", "utf-8")
    (tmp_path / "answerer.yaml").write_text("instruction: Answer.\nreasoning_strategy: slowly\n", "utf-8")
    check_prompts(tmp_path)
    assert "Take your time." in prompt("answerer", tmp_path).text()
    other = tmp_path / "other"
    other.mkdir()
    (other / "answerer.yaml").write_text("instruction: Answer.\nreasoning_strategy: chain_of_thougt\n", "utf-8")
    with pytest.raises(PromptError, match="unknown strategy 'chain_of_thougt'; choose from: chain_of_thought"):
        check_prompts(other)
    third = tmp_path / "third"
    third.mkdir()
    (third / "answerer.yaml").write_text("instruction: Answer.\nreasoning_strategy: Think of a number.\n", "utf-8")
    assert "Think of a number." in prompt("answerer", third).text()


async def test_the_coach_uses_the_files_named_in_the_settings(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "levels.yaml").write_text("1: {limit: 20}\n", "utf-8")
    model = ScriptedModel({"coach": reply("Which of the two turns around, the Sun or the Earth?")})
    async with coaching(tmp_path, model, f"COACH_DIR={own}") as conversation:
        turn = await conversation.say("Why does the shadow move?")
    assert turn.reply.text != ASKED
    assert "at most 20 are allowed" in model.requests[1].messages[-1].content


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("words.yaml", "affirmations: [yes, no]", "put yes, no, on and off in quotes"),
        ("words.yaml", "safe: [1]", "which is not text"),
        ("levels.yaml", "1: {templates: {en: []}}", "empty list"),
        ("generic.yaml", "rivals: []", "empty list"),
        ("meanings.yaml", "right: []", "empty list"),
        ("replies.yaml", 'out_of_scope: "It is $scroe."', "unknown placeholder $scroe"),
        ("levels.yml", "templates: {}", "replaces none"),
    ],
)
def test_an_error_in_a_custom_file_is_found_at_startup(tmp_path: Path, file: str, text: str, said: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(PromptError) as found:
        check_files(tmp_path)
    assert said in str(found.value)


async def test_an_interrupted_first_comparison_does_not_break_the_next() -> None:
    class InterruptedEncoder(HashEncoder):
        left = 1

        def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
            self.left -= 1
            if self.left < 0:
                self.left = 1_000
                raise OSError("cut off")
            return super().encode_passages(texts)

    meanings = Meanings(encoder=AsyncEncoder(InterruptedEncoder()))
    with pytest.raises(OSError, match="cut off"):
        await meanings.any_means(["I give up"], "gives_up")
    assert isinstance(await meanings.any_means(["I give up"], "gives_up"), bool)
