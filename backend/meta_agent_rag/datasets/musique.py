"""MuSiQue-Ans (Trivedi et al., TACL 2022, arXiv:2108.00573): 2 to 4 hops, twenty paragraphs, answers with aliases.

Official file: `musique_ans_v1.0_dev.jsonl` from https://github.com/StonyBrookNLP/musique (CC BY 4.0). Labels apply
to whole paragraphs, not sentences. Unanswerable rows of MuSiQue-Full are skipped.
"""

import re
from collections.abc import Sequence

from pydantic import BaseModel, Field, StrictBool

from .dataset import Aliases, Dataset, Paragraph, Question
from .hub import Hub
from .schema import String, Text

_REFERENCE = re.compile(r"#([0-9]+)")
_HOPS = re.compile(r"([0-9]+)hop[0-9]*(?=_)")


class _Paragraph(BaseModel, frozen=True):
    title: String
    paragraph_text: String
    is_supporting: StrictBool


class _Hop(BaseModel, frozen=True):
    question: String
    answer: String


class _MusiqueRow(BaseModel, frozen=True):
    id: Text
    question: Text
    answer: Text
    answer_aliases: tuple[String, ...] = ()
    answerable: StrictBool = True
    question_decomposition: tuple[_Hop, ...] = ()
    paragraphs: tuple[_Paragraph, ...] = Field(min_length=1)


def parse(raw: object, _aliases: Aliases) -> Question | None:
    """Convert a row; its type and hops are in the id's prefix, e.g. `3hop1` in `3hop1__145194_160545_62931`."""
    row = _MusiqueRow.model_validate(raw)
    if not row.answerable:
        return None
    prefix = _HOPS.match(row.id)
    return Question(
        id=row.id,
        text=row.question,
        answer=row.answer,
        aliases=row.answer_aliases,
        type=prefix[0] if prefix else None,
        hops=int(prefix[1]) if prefix else None,
        paragraphs=tuple(
            Paragraph(
                title=paragraph.title, sentences=(paragraph.paragraph_text,), is_supporting=paragraph.is_supporting
            )
            for paragraph in row.paragraphs
        ),
        facts=tuple(_fact(hop, row.question_decomposition) for hop in row.question_decomposition),
    )


def _fact(hop: _Hop, hops: Sequence[_Hop]) -> tuple[str, str, str]:
    """A hop as a separate question, in which `#1` is the first answer; `A >> b` asks for the b of A."""
    asked = _REFERENCE.sub(lambda found: _answer(hops, int(found[1])), hop.question)
    subject, marked, relation = asked.partition(" >> ")
    return ("", f"What is the {relation} of {subject}?" if marked else asked, hop.answer)


def _answer(hops: Sequence[_Hop], number: int) -> str:
    return hops[number - 1].answer if 0 < number <= len(hops) else ""


DATASET = Dataset(
    name="musique",
    title="MuSiQue",
    hub=Hub("dgslibisey/MuSiQue"),
    parse=parse,
    data_file="`musique_ans_v1.0_dev.jsonl`",
    example={
        "id": "2hop__1_2",
        "question": "Which river flows through the birthplace of Mara Voss?",
        "answer": "the Tarn",
        "answer_aliases": ["Tarn River"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Mara Voss", "paragraph_text": "Mara Voss was born in Orley.", "is_supporting": True},
            {"idx": 1, "title": "Orley", "paragraph_text": "The Tarn flows through Orley.", "is_supporting": True},
            {"idx": 2, "title": "Elm", "paragraph_text": "The elm is a tree of the north.", "is_supporting": False},
        ],
    },
)
