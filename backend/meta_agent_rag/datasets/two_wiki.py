"""2WikiMultiHopQA (Ho et al., COLING 2020, arXiv:2011.01060): HotpotQA's schema, and answers with aliases.

Official files: `dev.json` and `id_aliases.json` from https://github.com/Alab-NII/2wikimultihop (Apache-2.0).
The official score (`2wikimultihop_evaluate_v1.1.py`) counts an answer's aliases and demonyms as gold, found by
the row's `answer_id`; they are only in the separate file.
"""

from .dataset import Aliases, Dataset, Question
from .hub import Hub
from .schema import HotpotRow, String, paragraphs


class _TwoWikiRow(HotpotRow):
    answer_id: String | None = None
    evidences: tuple[tuple[String, String, String], ...] = ()


def parse(raw: object, aliases: Aliases) -> Question:
    """Convert a row of the official file or of the hub; in both, the sentences lack their leading blanks."""
    row = _TwoWikiRow.model_validate(raw)
    return Question(
        id=row.id,
        text=row.question,
        answer=row.answer,
        aliases=aliases.get(row.answer_id, ()) if row.answer_id else (),
        type=row.type,
        hops=row.hops(),
        paragraphs=paragraphs(row, spaced=True),
        supporting_facts=row.supporting_facts,
        facts=row.evidences,
    )


DATASET = Dataset(
    name="2wikimultihopqa",
    title="2WikiMultiHopQA",
    hub=Hub("framolfese/2WikiMultihopQA"),
    parse=parse,
    data_file="`dev.json`; aliases with `--aliases id_aliases.json`",
    takes_aliases=True,
    example={
        "_id": "2wiki-1",
        "type": "compositional",
        "question": "Who is the father of the director of Long Winter?",
        "answer": "Otto Hale",
        "answer_id": "Q1",
        "evidences": [["Long Winter", "director", "Vera Hale"], ["Vera Hale", "father", "Otto Hale"]],
        "supporting_facts": [["Long Winter (film)", 0], ["Vera Hale", 1]],
        "context": [
            ["Long Winter (film)", ["Long Winter is a film.", "It was directed by Vera Hale."]],
            ["Vera Hale", ["Vera Hale is a director.", "She is the daughter of Otto Hale."]],
        ],
    },
)
