"""What belongs to a subject: what is nearer to it than to anything else."""

import asyncio
from pathlib import Path

import pytest
import yaml

from benchmarks.socratic import data, scope_quality
from meta_agent_rag.chat.coach.scope import Subject, Topic, TopicScope, subject_of
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from tests.loop import settings_in

COURSE = Path(__file__).parents[2] / "docs" / "examples" / "course"
SUN = Topic(name="sun", anchors=("the height of the sun",))
TIME = Topic(name="time", anchors=("clock time",))


def hashed(*topics: Topic, threshold: float = 0.05) -> TopicScope:
    return TopicScope(subject=Subject(topics=topics), encoder=AsyncEncoder(HashEncoder()), threshold=threshold)


async def test_the_score_is_of_the_nearest_topic_or_of_the_question_that_a_reply_answers() -> None:
    scope = hashed(SUN, TIME, threshold=0.3)
    nearest = await scope.score("clock time")
    assert nearest is not None
    assert (nearest.topic, nearest.score >= nearest.threshold) == ("time", True)
    assert await hashed().score("clock time") is None
    alone, reply = await scope.score("the moon"), await scope.score("the moon", asked="Is it the moon?")
    assert alone is not None
    assert reply is not None
    assert (alone.threshold, reply.threshold < 0.3, reply.score > alone.score) == (0.3, True, True)


@pytest.mark.slow
async def test_questions_about_the_course_pass_and_others_do_not(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "ENCODER=all-MiniLM-L6-v2")
    encoder = AsyncEncoder(load_encoder(settings).encoder)
    await ingest(settings, [COURSE], "course", encoder=encoder)
    async with open_retriever(settings, "course", encoder=encoder) as retriever:
        subject = await asyncio.to_thread(subject_of, retriever.corpus.catalogue)
    scope = TopicScope(subject=subject, encoder=encoder, threshold=settings.scope_threshold)
    found = await scope_quality(scope, data("within"), [*data("outside"), *data("near")])
    assert (found["within"], found["outside"]) == (40, 40)
    assert found["precision"] >= 0.9
    assert found["recall"] >= 0.9
    rows = yaml.safe_load((Path(__file__).parents[1] / "coaching" / "replies.yaml").read_text(encoding="utf-8"))
    for kind, fewest, most in (("answers", 26, 32), ("changes", 0, 2)):
        scores = [await scope.score(text, asked=row["asked"]) for row in rows for text in row[kind]]
        assert fewest <= sum(one is not None and one.score >= one.threshold for one in scores) <= most
