"""The protocol of one of our runs."""

from meta_agent_rag.datasets import discover
from meta_agent_rag.llm.stages import endpoints_in_use

from ..run.config import RunConfig
from ..run.protocols import SCORER, Protocol

_EVIDENCE = {"gold": "supplied_context", "supporting": "supporting_paragraphs", "open_domain": "pooled_contexts"}
_PACKAGED = "the sample of this repository"


def protocol(config: RunConfig, *, n: int, pooled: int) -> Protocol:
    """How this run was measured, in the terms used to compare published rows.

    The split is known if the data set was read from the hub; for a file, only its name is known.
    """
    drawn = not config.limit and not config.sample_ids
    return Protocol(
        dataset=config.dataset,
        split=_split(config),
        evidence=f"the corpus {config.corpus}" if config.corpus else _evidence(config),
        sample=_sample(config, n, drawn=drawn),
        seed=config.seed if drawn else None,
        n=n,
        scorer=SCORER,
        aliases=_aliases(config),
        model=" and ".join(dict.fromkeys(endpoint.model for endpoint in endpoints_in_use(config.settings).values())),
        rounds=config.settings.max_metacognitive_rounds,
        pooled_questions=pooled if config.mode == "open_domain" and not config.corpus else None,
    )


def _sample(config: RunConfig, n: int, *, drawn: bool) -> str:
    words = f"rows {config.limit}" if config.limit else f"{n} drawn" if drawn else f"{n} named by id"
    return words if config.shard is None else f"{words}, shard {config.shard}"


def _evidence(config: RunConfig) -> str:
    searched = config.mode == "gold" and config.settings.supplied_evidence == "ranked"
    return "searched_context" if searched else _EVIDENCE[config.mode]


def _split(config: RunConfig) -> str:
    if config.data_file is not None:
        return f"the file {config.data_file.name}"
    known = discover(config.settings.datasets_dir).get(config.dataset)
    return _PACKAGED if known is None or known.hub is None else known.hub[2]


def _aliases(config: RunConfig) -> bool | None:
    """Were answers scored with aliases? `None` for a data set without aliases."""
    known = discover(config.settings.datasets_dir).get(config.dataset)
    if known is None:
        return None
    if known.takes_aliases:
        return config.aliases_file is not None
    example = known.parse(known.example, {})
    return True if example is not None and example.aliases else None
