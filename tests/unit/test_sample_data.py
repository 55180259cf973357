"""The bundled sample: its guarantees for answers and evidence, and the counts stated in its README."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).resolve().parents[2] / "benchmarks" / "sample"
ROWS: list[dict[str, Any]] = json.loads((SAMPLE / "questions.json").read_text(encoding="utf-8"))
TYPES = ("bridge", "comparison", "compositional", "yes_no")
LEVELS = {2: "easy", 3: "medium", 4: "hard"}


def titles(row: dict[str, Any]) -> set[str]:
    return {title for title, _ in row["supporting_facts"]}


def test_ids_questions_and_texts_are_unique() -> None:
    assert [row["_id"] for row in ROWS] == [f"sample-{n:03d}" for n in range(1, len(ROWS) + 1)]
    assert len({row["question"] for row in ROWS}) == len(ROWS)
    texts = {(title, "".join(sentences)) for row in ROWS for title, sentences in row["context"]}
    assert len({title for title, _ in texts}) == len({text for _, text in texts}) == len(texts)
    assert all(250 <= len(text) <= 650 for _, text in texts)


def test_supporting_facts_hops_and_level_fit() -> None:
    for row in ROWS:
        paragraphs = dict(row["context"])
        assert len(paragraphs) == len(row["context"]), row["_id"]
        assert all(paragraphs[title][index] for title, index in row["supporting_facts"]), row["_id"]
        assert (row["hops"], row["level"]) == (len(titles(row)), LEVELS[row["hops"]]), row["_id"]


def test_no_hop_can_be_skipped() -> None:
    for row in ROWS:
        if row["type"] == "yes_no":
            assert row["answer"] in {"yes", "no"}
        elif row["type"] == "comparison":
            assert re.search(rf"(?<!\w){re.escape(row['answer'])}(?!\w)", row["question"]), row["_id"]
        else:
            *earlier, last = (dict(row["context"])[title][index] for title, index in row["supporting_facts"])
            assert row["answer"] in last, row["_id"]
            assert not any(row["answer"] in text for text in (*earlier, row["question"])), row["_id"]
            (start, _), *later = row["supporting_facts"]
            assert not any(title != start and title.lower() in row["question"].lower() for title, _ in later)


def test_positions_and_verdicts_are_balanced() -> None:
    assert len({row["context"][0][0] in titles(row) for row in ROWS}) == 2
    answers = Counter(row["answer"] for row in ROWS if row["type"] == "yes_no")
    assert abs(answers["yes"] - answers["no"]) <= 1


def test_the_readme_states_the_true_counts() -> None:
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    pool = {title for row in ROWS for title, _ in row["context"]}
    assert f"{len(ROWS)} questions over {len(pool)} distinct paragraphs" in readme
    for name in (*TYPES, "all"):
        hops = Counter(row["hops"] for row in ROWS if name in {row["type"], "all"})
        assert f"| {name} | {' | '.join(str(hops[n]) for n in LEVELS)} | {hops.total()} |" in readme
