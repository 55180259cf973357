"""Every result that the prose of the findings and the README states is in a table that is generated from records."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.tables import as_markdown
from benchmarks.tools.findings import HELD_OUT, held_out, records, rendered, types

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/findings.md", "README.md")
TABLE = re.compile(r"<!-- table: .*?-->(.*?)<!-- /table -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
OF_THE_PROTOCOL = {"3", "4", "5", "60", "100", "0.5", "0.75", "75", "350", "1.3", "95", "23,767", "241", "300"}
"""Sizes, thresholds and rows, which no record can contradict; in the README also Python's version and the paper."""
OF_THE_README = {"2024", "2402.11626", "3.11", "93.3", "70"}
"""93.3 % is retrieval's, measured by `benchmarks.speed retrieval`."""


def numbers(text: str) -> set[str]:
    return {found.strip("+").rstrip(",") for found in NUMBER.findall(text)}


def rounded(found: set[str]) -> set[str]:
    """Also with fewer digits: prose says 46 % where a table says 45.6, and p = 0.08 for 0.083."""
    return found | {f"{float(one.replace(',', '')):.{digits}f}" for one in found for digits in (0, 2)}


def prose(text: str) -> str:
    text = re.sub(r"<!-- (\w+)\b[^>]*-->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|^ {4}.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|decision \d+|https?://\S+", "", text)


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The numbers of all generated tables, and of tables over other records that the prose cites."""
    shown = [part for name in DOCUMENTS for part in TABLE.findall(rendered((ROOT / name).read_text(encoding="utf-8")))]
    cited = [types(records("open_domain"))]
    return rounded(numbers(" ".join([*shown, *map(as_markdown, cited)])))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_prose_states_no_other_number(document: str, known: set[str]) -> None:
    published = (ROOT / "benchmarks" / "report" / "published.yaml").read_text(encoding="utf-8")
    own = OF_THE_README | numbers(published) if document == "README.md" else set()
    stated = numbers(prose((ROOT / document).read_text(encoding="utf-8")))
    assert stated - known - OF_THE_PROTOCOL - own == set()


def test_the_figures_that_the_demo_opens_with_are_those_of_the_records() -> None:
    assert json.loads(HELD_OUT.read_text(encoding="utf-8")) == held_out(records())
