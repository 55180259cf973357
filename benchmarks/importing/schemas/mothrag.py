"""MOTHRAG's released results: `{"summary": ..., "per_question": [...]}`, each question with `pred` and its cost.

Its `qid` is the position in its own file, so questions are matched by text. Source: `paper/results/*.json` of
juliangeymonat-jpg/mothrag.
"""

from collections.abc import Mapping, Sequence

from .schema import Prediction, PredictionRow, Schema


class _Row(PredictionRow):
    question: str
    pred: str | None
    n_llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float | None = None

    def prediction(self) -> Prediction:
        """With the calls, tokens and seconds that it states."""
        return Prediction(
            id=None,
            question=self.question,
            text=self.pred,
            calls=self.n_llm_calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            seconds=self.latency_s,
        )


def _rows(value: object) -> Sequence[object] | None:
    rows = value.get("per_question") if isinstance(value, Mapping) else None
    return rows if isinstance(rows, list) else None


SCHEMA = Schema(
    name="mothrag",
    about="MOTHRAG: paper/results/*.json",
    rows=_rows,
    row=_Row,
    example={
        "summary": {"n": 1, "em": 1.0, "f1": 1.0},
        "per_question": [
            {
                "qid": "0",
                "question": "Where?",
                "gold": "Oslo",
                "gold_aliases": [],
                "pred": "Oslo",
                "n_llm_calls": 11,
                "prompt_tokens": 27501,
                "completion_tokens": 2393,
                "latency_s": 7.4,
            }
        ],
    },
)
