"""Every setting, and the only reader of the environment and of `.env`.

Precedence: command line (`--set NAME=VALUE`) > environment > `.env` > default.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from platformdirs import user_data_path
from pydantic import Field, PositiveFloat, PositiveInt, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from .errors import SettingsError
from .setting_faults import FORMER, fault, known_as, nearest, say_former, todays_name, warn_of_slips
from .setting_models import ModelSettings
from .setting_types import Device, Key, LoopParts, Names, Tier, UnitFloat, Url

__all__ = ["Settings", "Tier", "UnitFloat", "child_environment", "described", "lent_environment"]

_LOG = logging.getLogger(__name__)
_WORKING_FOLDER_ENV = Path(".env")
_CODE_FOLDERS = ("deficits_dir", "operators_dir", "routes_dir", "methods_dir", "datasets_dir")
"""Folders whose Python files are run; a `.env` that happens to lie in the working folder cannot name them."""
_KEY_OF_ADDRESS = {
    "llm_base_url": "llm_api_key",
    "qdrant_url": "qdrant_api_key",
    "elasticsearch_url": "elasticsearch_api_key",
}
"""The key that is sent to an address. An address from `.env` only gets a key from `.env`."""


class Settings(ModelSettings):
    """All settings, those for models first; frozen, so that they cannot change during a run."""

    model_config = SettingsConfigDict(
        frozen=True, env_file=_WORKING_FOLDER_ENV, env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore"
    )

    # -- the loop
    max_metacognitive_rounds: Annotated[int, Field(ge=0, le=50)] = Field(
        5, description="Maximum number of repairs; the first draft is round 0."
    )
    monitor_policy: str = Field(
        "vote",
        description="When a draft is satisfactory: if a `vote` over routes elects its answer, `agreement` of its short "
        "answer with the second answer, `paper` (cosine alone), or `calibrated` (a fitted file).",
    )
    diagnosis: Literal["facts", "critic"] = Field(
        "facts",
        description="Under MONITOR_POLICY=vote, who names the deficit: rules over the derivation's `facts`, or the "
        "model as `critic`, as under the other policies.",
    )
    routes: Names | None = Field(
        None,
        description="Routes that vote beside draft and derivation, in this order; default: `plain_pass,"
        "chain_of_thought,step_by_step,chain_of_thought,chain_of_thought`, and `plain_pass` with the packaged model.",
    )
    plans: Literal["model", "grammar"] | None = Field(
        None,
        description="Who plans a derivation: the `model`, if the question's grammar gives no plan, or the `grammar` "
        "alone; default: `model`, and `grammar` with the packaged model, which cannot plan reliably.",
    )
    vote_share: UnitFloat = Field(
        0.7, description="Share of the vote that elects an answer without asking another route."
    )
    loop_without: LoopParts = Field(
        (),
        description="Parts of the loop to disable (for ablations), joined by `+`: `derivation`, `grammar`, "
        "`plan_checks`, `operators`, `vote`, `search`; or `none`.",
    )
    operators_dir: Path | None = Field(None, description="A folder with operators of your own for derivations.")
    routes_dir: Path | None = Field(None, description="A folder with routes of your own.")
    monitor_calibration: Path | None = Field(
        None, description="The file for MONITOR_POLICY=calibrated, written by `marag bench calibrate`."
    )
    monitor_similarity_threshold: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        0.4, description="Cosine of the draft and the second answer at which the monitor is satisfied."
    )
    monitor_encoder: str = Field(
        "all-MiniLM-L6-v2", description="Encoder of the monitor, for which the threshold was set."
    )
    convergence_threshold: UnitFloat = Field(
        0.85,
        validation_alias=known_as("convergence_threshold"),
        description="Jaccard similarity of consecutive answers at which the loop has converged.",
    )
    selection: Literal["best", "last"] = Field(
        "best", description="Which draft is returned: the best supported, or the last, as in the paper."
    )
    short_answer: Literal["inline", "stage"] = Field(
        "inline",
        description="Take the short answer from the write call, or from a separate call (stage `short_answer`).",
    )
    evidence_tokens: PositiveInt = Field(6000, description="Maximum number of evidence tokens in a prompt.")
    supplied_evidence: Literal["ranked", "whole"] = Field(
        "ranked",
        description="Evidence supplied with a question: `ranked` shows the best RETRIEVAL_TOP_K passages and "
        "searches the rest on demand, `whole` shows all of it.",
    )
    deficits_dir: Path | None = Field(None, description="A folder with your own deficit files.")
    methods_dir: Path | None = Field(
        None, description="A folder with benchmark methods of your own, each with its prompts beside it."
    )
    datasets_dir: Path | None = Field(None, description="A folder with data sets of your own.")
    prompts_dir: Path | None = Field(
        None, description="A folder with prompt files that replace the built-in ones of the same name."
    )

    self_consistency_samples: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="Chains of thought that the benchmark's `self_consistency` samples per question."
    )

    # -- answers from documents
    citation_style: str = Field("page", description="How citations are written into an answer.")
    unsupported_claims: Literal["mark", "drop"] = Field(
        "mark", description="Mark claims that no cited passage supports, or drop them (strict)."
    )
    claim_check: Literal["critic", "exact"] | None = Field(
        None,
        description="Who checks claims: the `critic`, in one call, or code alone (`exact`), which shows only what a "
        "passage says in the same words; default: `critic`, and `exact` with the packaged model.",
    )
    overview_calls: int = Field(
        50, ge=1, description="Maximum number of calls for one summary or comparison of whole documents."
    )
    confidence_floor: UnitFloat = Field(
        0.5,
        description="A grounded answer is refused as not covered if 0.6 x retrieval + 0.4 x generation is lower.",
    )
    leakage_dir: Path | None = Field(
        None, description="A folder with CORPUS.yaml files: phrases that show an answer going beyond that corpus."
    )

    # -- the conversation
    memory: str = Field("summary_buffer", description="What a conversation remembers.")
    memory_exchanges: Annotated[int, Field(ge=0, le=100)] = Field(
        4,
        description="Latest exchanges kept verbatim when older ones are summarised; 0 summarises every "
        "exchange at once.",
    )
    memory_fold_at: Annotated[int, Field(ge=1, le=200)] = Field(
        8,
        description="Number of exchanges at which older ones are summarised, more than MEMORY_EXCHANGES; `buffer` "
        "keeps this many.",
    )
    memory_tokens: Annotated[int, Field(ge=200)] = Field(
        3000,
        description="Maximum tokens of exchanges kept verbatim and shown in a prompt; beyond it, older ones "
        "are summarised.",
    )

    # -- the coach
    scope_threshold: Annotated[float, Field(ge=-1.0, le=1.0)] | None = Field(
        None,
        description="How much nearer the corpus must be to a message than general questions are (difference of "
        "cosines), else the coach rejects it as off topic; default: calibrated for each corpus.",
    )
    coach_dir: Path | None = Field(
        None,
        description="Folder with your own levels.yaml, words.yaml, meanings.yaml, generic.yaml or replies.yaml; an "
        "entry replaces the built-in entry of the same name.",
    )
    scope_topics: Path | None = Field(
        None, description="A YAML file of topics with anchor texts; default: titles and headings of the corpus."
    )

    # -- retrieval
    retrieval_top_k: PositiveInt = Field(5, description="Number of passages that a search returns.")
    retrieval_pool: PositiveInt = Field(50, description="Candidates that each store contributes before fusion.")
    rrf_k: PositiveInt = Field(60, description="The constant k of reciprocal rank fusion.")
    fusion: Literal["rrf", "blend"] = Field(
        "rrf", description="Reciprocal rank fusion, or a weighted blend of normalised scores with a floor."
    )
    blend_floor: UnitFloat = Field(
        0.60, description="Blended score below which a passage counts as irrelevant; only with FUSION=blend."
    )
    screening: bool = Field(
        True, description="Leave passages out of answers that read like orders to a language model, and report them."
    )
    links: bool = Field(True, description="Look for the next hop along titles that a retrieved passage mentions.")
    reranker: str | None = Field(
        None, description="A cross-encoder (folder or hub name) that reorders the best candidates; default: none."
    )
    encoder: str = Field(
        "BAAI/bge-small-en-v1.5",
        description="Encoder of passages; the packaged all-MiniLM-L6-v2 if it is unavailable, "
        "and words alone without the extra `torch`.",
    )
    encoder_runtime: Literal["onnx", "torch"] = Field(
        "onnx", description="What computes vectors: onnxruntime on the CPU, or torch, which can also use a GPU."
    )
    encoder_device: Device = Field(
        "auto",
        description="Where torch computes vectors: `auto` (a GPU if PyTorch finds one), `cpu`, `cuda`, `cuda:1` or "
        "`mps`; a GPU requires ENCODER_RUNTIME=torch.",
    )
    encoder_batch: Annotated[int, Field(ge=1, le=4096)] | None = Field(
        None, description="Texts that the encoder computes at once; default: 32 with torch, 4 with onnxruntime."
    )
    hf_token: Key | None = Field(
        None, description="Token for the Hugging Face hub (encoders, data sets); also silences its messages."
    )
    qdrant_url: Url | None = Field(None, description="Qdrant server, for instance http://127.0.0.1:6333.")
    qdrant_api_key: Key | None = Field(None, description="API key for QDRANT_URL, if it requires one.")
    qdrant_compressed: bool = Field(
        False,
        description="New collections keep 8-bit codes of vectors in the server's memory, and the vectors on disk.",
    )
    elasticsearch_url: Url | None = Field(
        None, description="Elasticsearch server, for instance http://127.0.0.1:9200; set both servers or neither."
    )
    elasticsearch_api_key: Key | None = Field(None, description="API key for ELASTICSEARCH_URL, if it requires one.")

    dense_store: str | None = Field(
        None,
        description="Store of vectors for new corpora; default: `qdrant` if QDRANT_URL is set, else `qdrant-edge`.",
    )
    lexical_store: str | None = Field(
        None,
        description="Store of words for new corpora; default: `elasticsearch` if ELASTICSEARCH_URL is set, else "
        "`tantivy`.",
    )

    # -- ingestion
    chunker: str = Field("characters", description="How documents are split into passages.")
    chunk_characters: Annotated[int, Field(ge=64, le=100_000)] = Field(
        512, description="Maximum passage length of the chunker `characters`."
    )
    chunk_overlap: Annotated[int, Field(ge=0)] = Field(
        64, description="Characters that a passage shares with the previous one; less than CHUNK_CHARACTERS."
    )
    ingest_file_mb: PositiveFloat = Field(
        64.0, description="Maximum size of an ingested file, in MB; passage JSONL, read row by row, may be larger."
    )
    ingest_seconds: PositiveFloat = Field(
        120.0, description="Maximum time for reading one file, in seconds; for passage JSONL, per INGEST_FILE_MB."
    )
    ingest_memory_mb: PositiveInt = Field(1024, description="Maximum memory for reading one file, in MB.")

    # -- the service
    service_deadline_seconds: PositiveFloat | None = Field(
        None,
        description="Deadline of a request to `marag serve`, in seconds; default: 5, or 120 with the embedded model.",
    )
    service_concurrency: PositiveInt = Field(
        32, description="Questions answered in parallel; further ones are rejected at once with 503."
    )
    service_rate_per_minute: PositiveInt = Field(
        100,
        validation_alias=known_as("service_rate_per_minute"),
        description="Questions that one key may ask in any minute; reads are counted separately against the "
        "same limit.",
    )
    service_context_characters: PositiveInt = Field(
        50_000, description="Maximum length of a context supplied with a request, in characters."
    )
    service_summary_sections: PositiveInt = Field(
        8, description="Maximum number of sections, at one call each, in a summary by the service."
    )
    service_body_kb: PositiveInt = Field(512, description="Maximum body of a JSON request, in KB.")
    service_upload_mb: PositiveFloat = Field(
        64.0, description="Maximum body of an upload of documents, in MB; each file is also limited by INGEST_FILE_MB."
    )
    service_upload_seconds: PositiveFloat = Field(300.0, description="Maximum time for one upload, in seconds.")
    service_upload_kb_per_second: PositiveFloat = Field(
        16.0,
        validation_alias=known_as("service_upload_kb_per_second"),
        description="Minimum rate of an upload, in KB per second; the first ten seconds are exempt.",
    )
    service_wrong_keys_per_minute: PositiveInt = Field(
        20,
        validation_alias=known_as("service_wrong_keys_per_minute"),
        description="Wrong keys that one address may send per minute before it is rejected.",
    )
    service_open_metrics: bool = Field(
        False, description="Serve /metrics without a key, for a scraper on a closed network; default: scope `admin`."
    )
    service_key_pepper: Key | None = Field(
        None, description="Secret mixed into the digests of keys; default: one generated in the data folder."
    )
    service_log_questions: bool = Field(False, description="Include questions in the log of the service.")
    audit_hot_days: PositiveInt = Field(
        90, description="Days after which `marag audit prune` removes prompts and raw replies from a record."
    )
    audit_warm_days: PositiveInt = Field(
        365, description="Days after which `marag audit archive` moves a record from the database to a file."
    )
    database_url: Key | None = Field(
        None,
        description="Database for keys and audit, as postgresql://NAME:PASSWORD@HOST/DATABASE; default: SQLite "
        "in the data folder.",
    )
    redis_url: Key | None = Field(
        None, description="Redis for rate limits across several workers, as redis://HOST:6379; default: in memory."
    )

    # -- telemetry
    otel_exporter_otlp_endpoint: Url | None = Field(
        None,
        description="Where spans are sent (OTLP over HTTP), as http://127.0.0.1:4318: by `marag serve`, `mcp`, `ask`, "
        "`chat` and by benchmarks; needs the extra `telemetry`.",
    )
    telemetry_content: bool = Field(False, description="Include questions, queries, prompts and replies in spans.")

    # -- the demo
    demo_visitor_usd: PositiveFloat = Field(
        0.25, description="Maximum spending per visitor of `marag demo`, in dollars, if the model has a known price."
    )

    # -- places
    marag_data_dir: Path = Field(
        default_factory=lambda: user_data_path("marag", appauthor=False),
        description="Corpora, cache and ledger; default: the platform's user data folder.",
    )

    _roles_from_file: bool = PrivateAttr(False)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Apply the documented precedence, and what a `.env` file may not do; report misspelt names."""
        for source in (env_settings, dotenv_settings):
            if isinstance(source, EnvSettingsSource):
                say_former(source.env_vars)
        if isinstance(dotenv_settings, DotEnvSettingsSource):
            warn_of_slips(dotenv_settings.env_vars, {*cls.model_fields, *FORMER})
        if isinstance(dotenv_settings, DotEnvSettingsSource) and isinstance(env_settings, EnvSettingsSource):
            given = set(init_settings()) | set(env_settings.env_vars)
            env_settings.env_vars, dotenv_settings.env_vars = _trusted(
                env_settings.env_vars, dotenv_settings.env_vars, given
            )
        return init_settings, env_settings, dotenv_settings

    def secret(self, variable: str, *, foreign: bool = False) -> SecretStr | None:
        """A key by the name of its variable: that of a setting, or any other in the environment and `.env`.

        A `foreign` one is named by MODEL_ROLES; if those come from `.env`, so must the key.
        """
        value = dotenv_values(_WORKING_FOLDER_ENV).get(variable)
        if foreign and self._roles_from_file:
            if not value and variable in os.environ:
                _warn_once(
                    f"MODEL_ROLES in .env names the key {variable}, which is not in .env and is not sent; set "
                    "MODEL_ROLES in the environment or with --set."
                )
        elif variable.lower() in type(self).model_fields:
            key: SecretStr | None = getattr(self, variable.lower())
            return key
        else:
            value = os.environ.get(variable) or value
        return SecretStr(value.strip()) if value else None

    @classmethod
    def load(cls, assignments: Sequence[str] = (), **overrides: object) -> "Settings":
        """Read all sources; `assignments` are `NAME=VALUE` as for `--set`.

        Raises `SettingsError`, which names the setting, its value (secrets hidden) and the remedy.
        """
        values = {**_assigned(assignments), **overrides}
        try:
            settings = cls(**values)  # type: ignore[arg-type]  # names and values are checked by pydantic
            settings._roles_from_file = "model_roles" not in values and "MODEL_ROLES" not in map(str.upper, os.environ)
            return settings
        except ValidationError as error:
            raise SettingsError(fault(error, cls.model_fields)) from None
        except UnicodeDecodeError:
            raise SettingsError("The file .env in this folder is not UTF-8 text; save it as UTF-8.") from None


def _trusted(
    environment: Mapping[str, str | None], file: Mapping[str, str | None], given: set[str]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The variables of the environment and of `.env`, without code folders of `.env` and keys that it would divert."""
    own, found = dict(environment), dict(file)
    for name in _CODE_FOLDERS:
        if found.pop(name, None):
            _warn_once(
                f"{name.upper()} in .env is ignored, because its files would be run; set it in the environment or with "
                "--set."
            )
    for address, key in _KEY_OF_ADDRESS.items():
        if found.get(address) and address not in given and own.pop(key, None) and not found.get(key):
            _warn_once(
                f"{address.upper()} is set in .env, so {key.upper()} of the environment is not sent there; set both in "
                "one place."
            )
    return own, found


@cache  # warns once, although settings are read several times in a process
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)


def _assigned(assignments: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        field = todays_name(name.strip().lower())
        if not equals:
            raise SettingsError(f"--set {assignment!r} has no value; write it as NAME=VALUE.")
        if field not in Settings.model_fields:
            meant = nearest(field, Settings.model_fields)
            near = f" (did you mean {meant.upper()}?)" if meant else ""
            raise SettingsError(f"There is no setting {name.strip()!r}{near}; `marag config show` lists them.")
        values[field] = value.strip() or None
    return {name: value for name, value in values.items() if value is not None}


def child_environment(**defaults: str) -> dict[str, str]:
    """The environment for a child process: that of this process, with `defaults` for unset variables."""
    return {**defaults, **os.environ}


@contextmanager
def lent_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables in the environment of this process, and restore its own afterwards."""
    own = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
            os.environ.update({name: own[name]} if name in own else {})


def described() -> list[tuple[str, str, Any]]:
    """Every setting as (environment name, description, default), in the order of the class.

    Users see `cli.shared.choices.described`, which adds the names that a registry offers.
    """
    return [
        (name.upper(), field.description or "", None if field.default_factory else field.default)
        for name, field in Settings.model_fields.items()
    ]
