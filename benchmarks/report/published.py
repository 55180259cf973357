"""Published figures of `published.yaml`, and how a run was measured, to compare the two by."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from meta_agent_rag.datasets import discover
from meta_agent_rag.llm.stages import endpoints_in_use

from ..run.config import RunConfig
from ..tables import Cells, Table, number

SCORER = "HotpotQA's official script"
_FILE = Path(__file__).with_name("published.yaml")
_EVIDENCE = {
    "gold": "the paragraphs supplied with each question",
    "supporting": "the supporting paragraphs alone",
    "open_domain": "pooled paragraphs of {pooled:,} questions",
}


@cache
def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["groups"]
    return groups


def published(dataset: str) -> Table:
    """The published figures on a data set with their protocols; without rows if there are none."""
    rows: list[Cells] = []
    for group in _groups():
        for name, by_dataset in group["figures"].items():
            if (printed := by_dataset.get(dataset)) is not None:
                some = isinstance(printed, dict)  # single figures by name
                figures = (None, printed.get("f1"), None, None, printed.get("judged")) if some else printed
                cells = [number(figure) for figure in (*figures, None, None, None)[:5]]
                rows.append((name, *cells, group["protocol"], group["source"]))
    head = ("method", "EM", "F1", "prec.", "rec.", "judged", "protocol, as far as stated", "source")
    return Table(name="published", title="Published figures, percent", head=head, rows=rows)


def protocol(config: RunConfig, *, n: int, pooled: int) -> dict[str, str]:
    """How this run was measured, by aspect; of a data file only its name is known."""
    drawn = f"{n} drawn, seed {config.seed}" if not config.sample_ids else f"{n} named by id"
    sample = f"rows {config.limit}" if config.limit else drawn
    known = discover(config.settings.datasets_dir).get(config.dataset)
    split = "the sample of this repository" if known is None or known.hub is None else known.hub[2]
    searched = ", searched" if config.mode == "gold" and config.settings.supplied_evidence == "ranked" else ""
    evidence = (
        f"the corpus {config.corpus}" if config.corpus else _EVIDENCE[config.mode].format(pooled=pooled) + searched
    )
    models = dict.fromkeys(endpoint.model for endpoint in endpoints_in_use(config.settings).values())
    aliases = {"aliases": "with" if config.aliases_file else "without"} if known and known.takes_aliases else {}
    return {
        "data set": config.dataset,
        "split": split if config.data_file is None else f"the file {config.data_file.name}",
        "evidence": evidence,
        "questions": f"{n:,}",
        "sample": sample if config.shard is None else f"{sample}, shard {config.shard}",
        "scorer": SCORER if config.scorer == "official" else f"the scorer {config.scorer}",
        **aliases,
        "model": " and ".join(models),
        "rounds": str(config.settings.max_metacognitive_rounds),
    }
