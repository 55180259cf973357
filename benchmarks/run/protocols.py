"""Protocols of `protocols.yaml`: what makes rows comparable, and how two of them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel
from pydantic import ValidationError as FileError

from meta_agent_rag.discovery import named
from meta_agent_rag.errors import DataFileError

SCORER = "HotpotQA's official script"
Table = TypeVar("Table", bound=BaseModel)
_FILE = Path(__file__).with_name("protocols.yaml")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How figures on a data set were measured; `None` if a source does not state it.

    `evidence` is a key of `evidence` in `protocols.yaml`, or free text; `pooled_questions` is the number of
    questions whose paragraphs were pooled, if they were. `aliases` says whether answers were scored with
    aliases; in our protocols it is `None` if the data set has none. `seed` is that of the draw, if there was one,
    and `rounds` the number of repairs that a looping method may make.
    """

    dataset: str
    split: str | None = None
    evidence: str | None = None
    sample: str | None = None
    seed: int | None = None
    n: int | None = None
    scorer: str | None = None
    aliases: bool | None = None
    model: str | None = None
    rounds: int | None = None
    pooled_questions: int | None = None

    def aspects(self) -> dict[str, str | None]:
        """Each aspect in words."""
        drawn = "" if self.seed is None else f", seed {self.seed}"
        return {
            "data set": self.dataset,
            "split": self.split,
            "evidence": evidence_words(self.evidence, self.pooled_questions),
            "questions": None if self.n is None else f"{self.n:,}",
            "sample": None if self.sample is None else f"{self.sample}{drawn}",
            "scorer": self.scorer,
            "aliases": None if self.aliases is None else "with" if self.aliases else "without",
            "model": self.model,
            "rounds": None if self.rounds is None else str(self.rounds),
        }


class _Protocols(BaseModel, frozen=True, extra="forbid"):
    evidence: Mapping[str, str]
    published: Mapping[str, Mapping[str, Any]]


def published_protocol(name: str, dataset: str) -> Protocol:
    """The protocol that a group of `published.yaml` names, on one data set; raises `UnknownNameError`.

    In the file, `aliases` lists the data sets that were scored with aliases.
    """
    stated = dict(named("published protocol", name, _protocols().published))
    aliases = stated.pop("aliases", None)
    return Protocol(dataset=dataset, aliases=None if aliases is None else dataset in aliases, **stated)


def differences(theirs: Protocol, ours: Protocol) -> list[str]:
    """List how the measurement of figures differs from ours; empty if the two are comparable.

    What a source does not state counts as a difference, listed at the end. Aliases are ignored if
    the data set has none.
    """
    measured, other = ours.aspects(), theirs.aspects()
    pairs = [(aspect, other[aspect], words) for aspect, words in measured.items() if words is not None]
    lines = [
        f"{aspect}: {published}, ours {words}"
        for aspect, published, words in pairs
        if published is not None and published.casefold() != words.casefold()
    ]
    untold = [aspect for aspect, published, _ in pairs if published is None]
    return lines + ([f"not stated: {', '.join(untold)}"] if untold else [])


def evidence_words(kind: str | None, pooled: int | None) -> str | None:
    """A kind of evidence in words."""
    if kind is None:
        return None
    words = _protocols().evidence.get(kind, kind)
    return words.replace("{pooled_questions}", "many" if pooled is None else f"{pooled:,}")


@cache
def _protocols() -> _Protocols:
    return read_table(_FILE, _Protocols)


def read_table(file: Path, shape: type[Table]) -> Table:
    """One of the benchmark's YAML files. Raises `DataFileError`."""
    try:
        return shape.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (yaml.YAMLError, FileError) as error:
        raise DataFileError(f"{file.name} is malformed: {error}") from None
