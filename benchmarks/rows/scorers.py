"""How an answer is scored against its gold answers: the official script, or a variant for other languages.

>>> score = scorer_named("multilingual")
>>> round(score("绍兴", ["浙江绍兴"]).f1, 2)
0.67
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from meta_agent_rag.discovery import named

from ..metrics import AnswerScore, score_answer

Scorer: TypeAlias = Callable[[str, Sequence[str]], AnswerScore]
_UNSPACED = re.compile(r"([\u0e00-\u0e7f\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff])")
"""Characters of scripts that put no blanks between words: Chinese, Japanese and Thai."""


def _multilingual(prediction: str, golds: Sequence[str]) -> AnswerScore:
    """Score with every character of an unspaced script as a word, without punctuation of any script, as MLQA does."""
    return score_answer(_segmented(prediction), [_segmented(gold) for gold in golds])


def _segmented(text: str) -> str:
    plain = "".join(char for char in text if not unicodedata.category(char).startswith("P") or char.isascii())
    return _UNSPACED.sub(r" \1 ", plain)


SCORERS: Mapping[str, Scorer] = {"official": score_answer, "multilingual": _multilingual}


def scorer_named(name: str) -> Scorer:
    """The scorer of that name; raises `UnknownNameError`."""
    return named("scorer", name, SCORERS)
