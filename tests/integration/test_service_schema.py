"""The service conforms to its OpenAPI document: a few requests here, thousands in `benchmarks.tools.service_schema`."""

from pathlib import Path

import pytest

from benchmarks.tools.service_schema import LIMITLESS, SEED, examine, serving
from tests.loop import settings_in


@pytest.mark.slow
async def test_schemathesis_finds_no_errors(tmp_path: Path) -> None:
    async with serving(settings_in(tmp_path, *LIMITLESS)) as (url, token):
        found = await examine(url, token, tmp_path, each=2, seed=SEED, phases="coverage,fuzzing")
    assert found.failures == 0, found.said
    assert found.cases >= 12, found.said
