"""The bundled sample: its schema, its guarantees for answers and evidence, and the counts stated in its README."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

SAMPLE = Path(__file__).resolve().parents[2] / "benchmarks" / "sample"
TYPES = ("bridge", "comparison", "compositional", "yes_no")
HOPS = (2, 3, 4)
LEVELS = {2: "easy", 3: "medium", 4: "hard"}

Text = Annotated[str, Field(min_length=1)]
Paragraph = tuple[Text, Annotated[list[Text], Field(min_length=2, max_length=5)]]


class Question(BaseModel):
    """One row: HotpotQA's distractor fields, and `hops` and `answer_aliases`. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(alias="_id", pattern=r"^sample-\d{3}$")]
    question: Annotated[str, Field(pattern=r"^[A-Z].*\?$")]
    answer: Text
    answer_aliases: Annotated[list[Text], Field(min_length=1)] | None = None
    supporting_facts: Annotated[list[tuple[Text, Annotated[int, Field(ge=0)]]], Field(min_length=2)]
    context: Annotated[list[Paragraph], Field(min_length=8, max_length=10)]
    type: Literal["bridge", "comparison", "compositional", "yes_no"]
    level: Literal["easy", "medium", "hard"]
    hops: Annotated[int, Field(ge=2, le=4)]

    def supporting_titles(self) -> set[str]:
        return {title for title, _ in self.supporting_facts}

    def supporting_sentences(self) -> list[str]:
        """Sentences with the supporting facts, in chain order; IndexError or KeyError for a dangling one."""
        paragraphs = dict(self.context)
        return [paragraphs[title][index] for title, index in self.supporting_facts]


QUESTIONS = TypeAdapter(list[Question]).validate_json((SAMPLE / "questions.json").read_bytes())
README = (SAMPLE / "README.md").read_text(encoding="utf-8")

CHAINS = [row for row in QUESTIONS if row.type in {"bridge", "compositional"}]

each_question = pytest.mark.parametrize("row", QUESTIONS, ids=lambda row: row.id)
each_chain = pytest.mark.parametrize("row", CHAINS, ids=lambda row: row.id)


def pool() -> dict[str, str]:
    return {title: "".join(sentences) for row in QUESTIONS for title, sentences in row.context}


def test_the_sample_is_large_and_varied_enough() -> None:
    assert len(QUESTIONS) >= 48
    assert len(pool()) >= 170
    assert {row.type for row in QUESTIONS} == set(TYPES)
    assert {row.hops for row in QUESTIONS} == set(HOPS)


def test_ids_have_no_gaps_and_questions_are_unique() -> None:
    assert [row.id for row in QUESTIONS] == [f"sample-{n:03d}" for n in range(1, len(QUESTIONS) + 1)]
    assert len({row.question for row in QUESTIONS}) == len(QUESTIONS)


def test_a_title_has_the_same_text_everywhere() -> None:
    texts: dict[str, set[str]] = {}
    for row in QUESTIONS:
        for title, sentences in row.context:
            texts.setdefault(title, set()).add("".join(sentences))
    assert {title for title, found in texts.items() if len(found) > 1} == set()
    assert len({text for found in texts.values() for text in found}) == len(texts)


def test_paragraphs_have_the_stated_length() -> None:
    assert {title: len(text) for title, text in pool().items() if not 250 <= len(text) <= 650} == {}


def test_sentences_concatenate_to_the_text() -> None:
    for row in QUESTIONS:
        for title, (first, *rest) in row.context:
            assert first == first.strip(), title
            assert all(sentence == " " + sentence.strip() for sentence in rest), title


@each_question
def test_supporting_facts_point_into_the_context(row: Question) -> None:
    titles = [title for title, _ in row.context]
    assert len(set(titles)) == len(titles)
    assert len(set(row.supporting_facts)) == len(row.supporting_facts)
    assert row.supporting_titles() <= set(titles)
    assert all(row.supporting_sentences())


@each_question
def test_hops_and_level_follow_from_the_supporting_paragraphs(row: Question) -> None:
    assert row.hops == len(row.supporting_titles())
    assert row.level == LEVELS[row.hops]


@each_question
def test_the_answer_is_located_according_to_its_type(row: Question) -> None:
    if row.type == "yes_no":
        assert row.answer in {"yes", "no"}
    elif row.type == "comparison":
        assert re.search(rf"(?<!\w){re.escape(row.answer)}(?!\w)", row.question)
    else:
        *earlier, last = row.supporting_sentences()
        assert row.answer in last
        assert row.answer not in row.question
        assert not any(row.answer in sentence for sentence in earlier), (
            "a hop could be skipped if an earlier sentence held the answer"
        )


@each_question
def test_aliases_are_other_spellings(row: Question) -> None:
    spellings = [row.answer, *(row.answer_aliases or [])]
    assert len(set(spellings)) == len(spellings)


@each_chain
def test_later_hop_titles_are_not_in_the_question(row: Question) -> None:
    (start, _), *later = row.supporting_facts
    named = {title for title, _ in later if title != start and title.lower() in row.question.lower()}
    assert named == set()


def test_supporting_paragraphs_are_at_varying_positions() -> None:
    first = Counter(row.context[0][0] in row.supporting_titles() for row in QUESTIONS)
    assert first[True] > 0
    assert first[False] > 0


def test_yes_and_no_are_about_equally_frequent() -> None:
    answers = Counter(row.answer for row in QUESTIONS if row.type == "yes_no")
    assert sum(answers.values()) >= 8
    assert abs(answers["yes"] - answers["no"]) <= 1


def test_the_readme_states_the_true_counts() -> None:
    assert f"{len(QUESTIONS)} questions over {len(pool())} distinct paragraphs" in README
    for name in (*TYPES, "all"):
        hops = Counter(row.hops for row in QUESTIONS if name in {row.type, "all"})
        cells = [str(hops[n]) for n in HOPS]
        assert f"| {name} | {' | '.join(cells)} | {hops.total()} |" in README
    answers = Counter(row.answer for row in QUESTIONS if row.type == "yes_no")
    assert f"`yes` ({answers['yes']}) or `no` ({answers['no']})" in README
