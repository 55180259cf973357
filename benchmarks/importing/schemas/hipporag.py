"""HippoRAG's answers: a list of `QuerySolution.to_dict()`, with question, answer, gold answers and passages.

Its own `main.py` writes no file, so dump the result of `rag_qa`. Questions are matched by text. Source:
`QuerySolution` of OSU-NLP-Group/HippoRAG, `src/hipporag/utils/misc_utils.py`.
"""

from .schema import Prediction, PredictionRow, Schema, list_with


class _Row(PredictionRow):
    question: str
    answer: str | None

    def prediction(self) -> Prediction:
        """Matched by text alone."""
        return Prediction(id=None, question=self.question, text=self.answer)


SCHEMA = Schema(
    name="hipporag",
    about="HippoRAG: a list of QuerySolution.to_dict()",
    rows=list_with("question", "answer", "gold_answers", without="output"),
    row=_Row,
    example=[
        {
            "question": "Where?",
            "answer": "Oslo",
            "gold_answers": ["Oslo"],
            "docs": ["Oslo\nA city."],
            "doc_scores": [1.0],
            "gold_docs": None,
        }
    ],
)
