"""Right answers are shown and wrong ones are not: the cases of `tests/shown`, with two scripted critics."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from meta_agent_rag.grounding.quotes import is_verbatim
from tests.shown.cases import Case, Critic, all_cases, checking, shown, some_cases

SIZES = [pytest.param(some_cases, id="some"), pytest.param(all_cases, id="all", marks=pytest.mark.slow)]


async def shown_cases(folder: Path, some: Sequence[Case], critic: Critic) -> list[str]:
    """The names of the cases whose answers are shown unmarked; every quote that is shown must be verbatim."""
    names = []
    async with checking(folder, critic, "CLAIM_CHECK=critic") as check:
        for case in some:
            reply = await check(case)
            texts = [passage.searchable() for passage in case.passages]
            assert all(is_verbatim(quote, texts) for quote in reply.quotes), case.name
            assert sum(row.stage == "check_claims" for row in reply.calls) == 1
            if shown(case, reply):
                names.append(case.name)
    return names


def test_every_kind_has_enough_cases() -> None:
    right, wrong = ([case for case in all_cases() if (case.wrong is None) is side] for side in (True, False))
    assert (len(right), len(wrong)) == (896, 1738)
    assert {case.kind for case in right} >= {"paraphrase", "language", "table", "sum", "count", "date", "unit"}
    assert {case.kind for case in wrong} >= {
        *("other_fact", "swapped", "negated", "unsupported", "memory", "invented_quote", "wrong_number", "namesake")
    }
    assert {case.name for case in some_cases()} <= {case.name for case in all_cases()}


@pytest.mark.parametrize("cases", SIZES)
async def test_an_honest_critic_has_right_answers_shown_and_no_wrong_ones(cases: object, tmp_path: Path) -> None:
    every: Sequence[Case] = cases()  # type: ignore[operator]
    right, wrong = ([case for case in every if (case.wrong is None) is side] for side in (True, False))
    held = await shown_cases(tmp_path, right, "honest")
    assert len(held) >= 0.97 * len(right), sorted({case.name for case in right} - set(held))
    assert len(await shown_cases(tmp_path, wrong, "honest")) <= 0.01 * len(wrong)


@pytest.mark.parametrize("cases", SIZES)
async def test_a_critic_that_accepts_the_control_claim_is_not_believed(cases: object, tmp_path: Path) -> None:
    wrong = [case for case in cases() if case.wrong is not None]  # type: ignore[operator]
    assert len(slipped := await shown_cases(tmp_path, wrong, "gullible")) <= 0.05 * len(wrong), slipped
