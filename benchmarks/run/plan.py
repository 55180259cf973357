"""A run before it begins: its configuration is checked and its questions are loaded; nothing is written or called."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.datasets import HubAccess, LoadedQuestions, Question, discover, load_questions
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.pricing import unpriced
from meta_agent_rag.llm.stages import ANSWER, Use, endpoints_in_use
from meta_agent_rag.wording import counted

from ..metrics import scorer_named
from ..recording import Recording
from . import DEFAULT_N
from .arms import arm_settings, check_arms
from .config import RunConfig
from .folder import RunFolder
from .provenance import OWN_FILES, carried_settings, differing, recorded_settings
from .sampling import by_id, by_position, draw, sample_digest, sharded

_OF_BASELINES = "writer"
"""The role of the baselines' stages (`methods/stages.yaml`)."""
_JUDGE: tuple[Use, ...] = ("judge",)


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A checked run: its configuration, its questions, and what they were drawn from.

    `sample` states the number of `questions` of all shards together, a digest of their ids, and the number of
    questions in the data (`pooled`).
    """

    config: RunConfig
    loaded: LoadedQuestions
    questions: tuple[Question, ...]
    sample: Mapping[str, Any]


def planned(config: RunConfig) -> RunPlan:
    """Check a configuration and load its questions."""
    _check(config)
    pools = config.mode == "open_domain" and config.corpus is None  # the paragraphs of all questions
    loaded = load_questions(
        config.dataset,
        data_file=config.data_file,
        aliases_file=config.aliases_file,
        registry=discover(config.settings.datasets_dir),
        access=HubAccess(token=config.settings.hf_token, revision=config.revision),
        select=tuple if pools else partial(_sample, config),
    )
    questions = _sample(config, loaded.questions) if pools else loaded.questions
    if config.n is not None and config.n > loaded.total:
        complain(f"--n is {config.n}, but the data set has {loaded.total} questions; all are used.")
    _check_evidence(config, questions)
    uses = (*ANSWER, *(_JUDGE if config.judge else ()))
    return RunPlan(
        config=replace(config, model_words=described(config.settings, uses)),
        loaded=loaded,
        questions=questions if config.shard is None else sharded(questions, config.shard),
        sample={
            "questions": len(questions),
            "sha256": sample_digest([question.id for question in questions]),
            "pooled": loaded.total,
        },
    )


def resumed(config: RunConfig, folder: RunFolder, given: frozenset[str] = frozenset()) -> RunConfig:
    """The configuration of an earlier run, with its own settings; `given` are the settings of this command line.

    Its cost limit stays in force and counts what the whole run has paid, unless a new one is given. Raises
    `InputError` if a given setting shapes answers and has another value than in that run.
    """
    before = folder.config()
    settings = carried_settings(config.settings, before["settings"], given)
    if changed := differing(before, {**before, "settings": settings.model_dump(mode="json")}):
        raise InputError(
            f"The run {folder.path.name!r} was started with different values of {', '.join(changed)}; "
            "leave them out to resume it with its own, or start a new run."
        )
    if "rescored" in before:
        raise InputError(f"The run {folder.path.name!r} has answers of another run; repeat --rescore with its name.")
    return replace(config, settings=settings).as_begun(before["experiment"])


def replayed(config: RunConfig, recording: Recording) -> RunPlan:
    """The plan of a recorded run: data set, questions, rows of the table, seed and settings are the record's."""
    record = recording.run
    source = record["dataset"]
    own = replace(
        config.as_begun(record["experiment"]),
        settings=recorded_settings(record),
        model_words=record["model_words"],
        recorded=record,
        recorded_arms=recording.arms,
    )
    loaded = LoadedQuestions(
        questions=recording.questions,
        total=record["pooled"],
        source=source["source"],
        sha256=source["sha256"],
        aliases_sha256=source["aliases_sha256"],
    )
    sample = record.get("sample", {"questions": len(recording.questions), "pooled": record["pooled"]})
    return RunPlan(config=own, loaded=loaded, questions=recording.questions, sample=sample)


def recorded_config(run: Mapping[str, Any]) -> RunConfig:
    """The configuration in a `config.json`, without keys and addresses, but with the user's own files."""
    experiment = run["experiment"]
    own = {name: Path(place) for name in OWN_FILES if (place := run["settings"].get(name)) is not None}
    settings = recorded_settings(run).model_copy(update=own)
    empty = RunConfig(dataset=experiment["dataset"], mode=experiment["mode"], settings=settings)
    return replace(empty.as_begun(experiment), model_words=run.get("model_words", ""), recorded=run)


def check_recordable(config: RunConfig) -> None:
    """Refuse to record with the user's own files: a record is self-contained."""
    named = {sweep.partition("=")[0].strip().lower() for sweep in config.sweeps}
    for name in OWN_FILES:
        if getattr(config.settings, name) is not None or name in named:
            raise InputError(
                f"A record does not contain the files of {name.upper()}, so a replay would lack them; record a run "
                f"without {name.upper()}."
            )


def _check(config: RunConfig) -> None:
    """Refuse impossible configurations before anything is written."""
    check_arms(config.arms, config.settings)
    scorer_named(config.scorer)
    if config.concurrency is not None and config.concurrency < 1:
        raise InputError(f"--concurrency must be at least 1, not {config.concurrency}.")
    if sum(given is not None and given != () for given in (config.n, config.limit, config.sample_ids)) > 1:
        raise InputError("--n, --limit and --sample-id are mutually exclusive; give one of them.")
    _check_endpoints(config)
    if config.corpus is not None and config.mode != "open_domain":
        raise InputError(f"--corpus requires --mode open_domain, but the mode is {config.mode!r}.")
    if config.corpus is not None and "diagnosis" in config.oracles:
        raise InputError("--oracle diagnosis covers only the data set's own paragraphs; leave --corpus out.")


def _check_endpoints(config: RunConfig) -> None:
    """Refuse endpoints of the rows or the judge without their key, and a cost limit if a price is unknown."""
    at, unknown = datetime.now(UTC), dict[str, None]()
    called = [(config.settings, list(endpoints_in_use(config.settings, _JUDGE).values()))] if config.judge else []
    for arm in config.arms:
        settings = arm_settings(arm, config.settings)
        by_role = endpoints_in_use(settings, ANSWER)
        called.append((settings, [by_role[role] for role in by_role if arm.method.loop or role == _OF_BASELINES]))
    for settings, endpoints in called:
        for endpoint in endpoints:
            endpoint.require()
        if settings.cost_limit_usd is not None:
            unknown |= dict.fromkeys(unpriced(endpoints, at=at))
    if unknown:
        raise InputError(
            f"A cost limit needs prices, but the price of {', '.join(unknown)} is unknown; set "
            "`prices: free` in MODEL_ROLES for a server of your own, or leave it out."
        )


def _check_evidence(config: RunConfig, questions: Sequence[Question]) -> None:
    """Refuse questions without the evidence or the gold information that the run would give to its rows."""
    if config.corpus is None and not any(question.paragraphs for question in questions):
        raise InputError(
            f"The questions of {config.dataset!r} come without paragraphs; give --mode open_domain and "
            "--corpus NAME, a corpus made with `marag ingest`."
        )
    if config.mode != "supporting" and "retrieval" not in config.oracles:
        return
    lacking = [one.id for one in questions if not any(paragraph.is_supporting for paragraph in one.paragraphs)]
    if len(lacking) == len(questions):
        asked = "--mode supporting" if config.mode == "supporting" else "--oracle retrieval"
        raise InputError(
            f"{asked} gives the supporting paragraphs, but no question of {config.dataset!r} has any; "
            "use --mode gold, or a file with supporting facts."
        )
    if lacking:
        what = f"{counted(len(lacking), 'question')} without supporting paragraphs get no evidence"
        complain(f"{what}, first {lacking[0]}.")


def _sample(config: RunConfig, questions: Iterable[Question]) -> tuple[Question, ...]:
    if config.sample_ids:
        return by_id(questions, config.sample_ids)
    if config.limit is not None:
        return by_position(questions, config.limit)
    return draw(questions, DEFAULT_N if config.n is None else config.n, config.seed)
