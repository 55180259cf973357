"""Hand-written run folders, for tests of the code that reads them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.metrics import score_answer

Answer = tuple[str, str, str | None]
"""Question ID, gold answer and prediction; None means that the question failed."""


def config(dataset: str = "sample", **changes: Any) -> dict[str, Any]:
    """The required contents of `config.json`; `changes` replace parts, and settings when prefixed with `set_`."""
    settings = {"monitor_encoder": "all-MiniLM-L6-v2", "monitor_similarity_threshold": 0.4, "evidence_tokens": 6000}
    settings |= {name.removeprefix("set_"): value for name, value in changes.items() if name.startswith("set_")}
    experiment = {"dataset": dataset, "mode": "gold", "methods": ["metarag"], "n": 12, "limit": None, "seed": 42}
    experiment |= {name: value for name, value in changes.items() if not name.startswith("set_")}
    return {
        "experiment": experiment | {"data_file": None, "aliases_file": None, "corpus": None},
        "dataset": {"source": "questions.json", "sha256": "aa" * 32, "aliases_sha256": None},
        "provider": {
            "name": "deepseek",
            "base_url": None,
            "models": {"flash": "f", "pro": "p"},
            "embedded_model": None,
        },
        "deficits": {"reasoning_error": "d1"},
        "prompts": {"write": "p1"},
        "settings": settings,
        "commit": "0123456789abcdef",
    }


def row(answer: Answer, method: str = "metarag", **more: Any) -> dict[str, Any]:
    """A row of `samples.jsonl`, scored as the runner would."""
    id_, gold, prediction = answer
    asked: dict[str, Any] = {"id": id_, "method": method, "question": f"What is {id_}?", "gold": gold, "aliases": []}
    spent = {"tokens": {"prompt": 10, "cache_hit": 5, "completion": 2}, "llm_calls": 1, "cached_calls": 0}
    asked |= {**spent, "latency_s": 1.0, "cost_usd": None}
    if prediction is None:
        scores: Mapping[str, float | None] = dict.fromkeys(("em", "f1", "precision", "recall"))
        return {**asked, "prediction": None, **scores, "rounds": [], "error": "RefusedError: no", **more}
    score = score_answer(prediction, [gold])
    scores = {"em": score.em, "f1": score.f1, "precision": score.precision, "recall": score.recall}
    answered = {"fired": False, "chosen": 0, "stop_reason": "single_pass", "suspect": [], "rounds": [], "error": None}
    return {**asked, "prediction": prediction, **scores, **answered, **more}


def write_run(folder: Path, rows: Sequence[Mapping[str, Any]], **changes: Any) -> Path:
    """A run folder with these rows."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config(**changes)))
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder
