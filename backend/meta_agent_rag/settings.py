"""Every setting, and the only reader of the environment and of `.env`.

Precedence: command line (`--set NAME=VALUE`) > environment > `.env` > default.
"""

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from dotenv import dotenv_values
from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    SecretStr,
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from .errors import SettingsError
from .wording import fault_words, first_fault

__all__ = ["Settings", "Tier", "UnitFloat", "child_environment", "described", "lent_environment"]

_LOG = logging.getLogger(__name__)
_WORKING_FOLDER_ENV = Path(".env")
_CLOSE = 0.85
"""Similarity (difflib's ratio) from which a name counts as misspelt: DEEPSEEK_KEY does, OPENAI_API_BASE does not."""
_CODE_FOLDERS = ("deficits_dir", "operators_dir", "routes_dir", "methods_dir", "datasets_dir")
"""Folders whose Python files are run; a `.env` that happens to lie in the working folder cannot name them."""
_KEY_OF_ADDRESS = {
    "llm_base_url": "llm_api_key",
    "qdrant_url": "qdrant_api_key",
    "elasticsearch_url": "elasticsearch_api_key",
}
"""The key that is sent to an address. An address from `.env` only gets a key from `.env`."""

Tier = Literal["flash", "pro"]
UnitFloat = Annotated[float, Field(ge=0.0, le=1.0)]


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError(f"{str(path)!r} begins with an unknown home folder") from None


PlacePath = Annotated[Path, AfterValidator(_expanded)]
"""A file or folder; `~` is the home folder. Records are not read for settings of this type."""
_PROVIDERS = Path(__file__).parent / "llm" / "providers.yaml"


def _by_stage(value: object) -> object:
    """Parses `stage=tokens,stage=tokens`; a mapping is used as it is."""
    return pairs(value, form="STAGE=TOKENS, for instance write=900,look_up=64") if isinstance(value, str) else value


def pairs(text: str, *, form: str) -> dict[str, str]:
    """`NAME=VALUE,NAME=VALUE` as a mapping; raises `ValueError` with the expected `form`."""
    items = [item.partition("=") for item in text.split(",") if item.strip()]
    if any(not equals for _, equals, _ in items):
        raise ValueError(f"write it as {form}")
    found = {name.strip(): value.strip() for name, _, value in items}
    if len(found) < len(items):
        names = [name.strip() for name, _, _ in items]
        raise ValueError(f"it names {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _key(secret: SecretStr) -> SecretStr:
    """A key without surrounding blanks; rejects characters that an HTTP header cannot contain."""
    text = secret.get_secret_value().strip()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("it contains characters that keys never have; copy it again")
    return SecretStr(text)


def _address(url: str) -> str:
    """A URL with a valid host and port and without credentials, since addresses are shown and recorded."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("it contains a user name or password, which would be shown; use the key's setting instead")
    if "?" in url or "#" in url:
        raise ValueError(
            "it contains a query string, which would be shown but never sent; write it as http://HOST:PORT/PATH"
        )
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        _ = parts.port  # reading it triggers the check
    except ValueError:  # includes encoding errors
        raise ValueError("its host or port is invalid; write it as http://HOST:PORT/PATH") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is not a URL; write it as http://HOST:PORT/PATH")
    return url


def _names(value: object) -> object:
    """A list of names, separated by commas or, for a sweep over lists, `+`; `none` stands for an empty one."""
    if not isinstance(value, str):
        return value
    names = tuple(name.strip() for name in value.replace("+", ",").split(",") if name.strip())
    if not names:
        raise ValueError("it names nothing; leave it empty for the default")
    return () if names == ("none",) else names


def _device(name: str) -> str:
    """A device by torch's name, in lower case."""
    device = name.strip().lower()
    if not re.fullmatch(r"auto|cpu|mps|cuda(?::\d{1,3})?", device):
        raise ValueError("write auto, cpu, cuda, cuda:1 (the second GPU) or mps")
    return device


LoopPart = Literal["derivation", "grammar", "plan_checks", "operators", "vote", "search"]


Url = Annotated[str, AfterValidator(_address)]
Key = Annotated[SecretStr, AfterValidator(_key)]
Device = Annotated[str, AfterValidator(_device)]
StageTokens = Annotated[dict[str, PositiveInt], NoDecode, BeforeValidator(_by_stage)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
LoopParts = Annotated[tuple[LoopPart, ...], NoDecode, BeforeValidator(_names)]


JsonMode = Literal["json_object", "json_schema"]
_FORM = "ROLE=ENDPOINT,ROLE=ENDPOINT, for instance judge=openai:gpt-4.1, or give a .yaml file"


class EndpointRow(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """One endpoint in the file: a provider in `providers.yaml`, with the differences.

    `key` names the variable that holds the key, by default the provider's. `body` and `headers` are added to every
    request; values of headers are never shown. The others are fields of `providers.yaml`, for this endpoint alone.
    """

    provider: str = "compatible"
    base_url: Url | None = None
    model: str | None = None
    key: str | None = None
    thinking: bool = False
    body: dict[str, Any] = {}
    headers: dict[str, SecretStr] = {}
    json_mode: JsonMode | None = Field(None, alias="json")
    concurrency: PositiveInt | None = None
    context: PositiveInt | None = None
    seconds: PositiveInt | None = None
    logprobs: bool | None = None
    prices: str | None = None
    _given: Any = PrivateAttr(None)

    @property
    def given(self) -> Any:
        """A caller's own chat model, which no file can name."""
        return self._given


class ModelRoles(BaseModel, frozen=True, extra="forbid"):
    """Endpoints by name, and the names that are assigned to roles."""

    endpoints: dict[str, EndpointRow] = {}
    roles: dict[str, str] = {}


def _model_roles(value: object) -> object:
    """Parse `ROLE=ENDPOINT,...`, or the file at that path; a value that is not text is used as it is."""
    if not isinstance(value, str):
        return value
    if not value.endswith((".yaml", ".yml")):
        return {"roles": pairs(value, form=_FORM)}
    try:
        return ModelRoles.model_validate(yaml.safe_load(Path(value).read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        raise ValueError(first_fault(error, with_value=False)) from None
    except OSError as error:
        raise ValueError(f"the file cannot be read ({error.strerror}); check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)  # without the line itself, which may hold a secret
        place = "" if mark is None else f" in line {mark.line + 1}, column {mark.column + 1}"
        raise ValueError(f"the file is not YAML{place}; correct it") from None


Roles = Annotated[ModelRoles, NoDecode, BeforeValidator(_model_roles)]


if TYPE_CHECKING:

    class ProviderKeys(BaseSettings):
        """The keys of all providers."""

else:
    _ROWS = yaml.safe_load(_PROVIDERS.read_text(encoding="utf-8")).values()
    _KEYS = {
        row["key"]: (Key | None, Field(None, description=f"API key for {row['label']}."))
        for row in _ROWS
        if "key" in row and "base_url" in row
    }
    ProviderKeys = create_model("ProviderKeys", __base__=BaseSettings, **_KEYS)


class Settings(ProviderKeys):
    """All settings, after the keys of all providers; frozen, so that they cannot change during a run."""

    model_config = SettingsConfigDict(
        frozen=True,
        env_file=_WORKING_FOLDER_ENV,
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        allow_inf_nan=False,
    )

    # -- models
    llm_provider: str = Field(
        "auto",
        description="Provider by name (see `marag doctor`); `auto` takes the first key found, else the embedded model.",
    )
    llm_base_url: Url | None = Field(
        None,
        description="Any OpenAI-compatible endpoint, for instance http://127.0.0.1:8000/v1 (vLLM, Ollama, llama.cpp).",
    )
    llm_api_key: Key | None = Field(None, description="API key for LLM_BASE_URL, if it requires one.")
    flash_model: str | None = Field(None, description="Model of the flash tier; default: the provider's.")
    pro_model: str | None = Field(None, description="Model of the pro tier; default: the provider's.")
    embedded_model: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)] = Field(
        "auto",
        description="Model of the embedded provider: a name of `marag models`, or `auto`, the largest that is "
        "downloaded and fits this machine's memory, else the packaged SmolLM2-135M-Instruct.",
    )
    embedded_model_path: PlacePath | None = Field(None, description="Path to a GGUF file; overrides EMBEDDED_MODEL.")
    embedded_context_tokens: PositiveInt = Field(
        8192, description="Context window of the embedded model in tokens, per slot."
    )
    tiers: Literal["by_stage", "flash", "pro"] = Field(
        "by_stage",
        description="One tier for all stages, or `by_stage`: first drafts and look-ups by flash, repairs and critic by "
        "pro. Benchmarks default to `flash`, so that every method has the same model.",
    )
    model_roles: Roles = Field(
        default_factory=ModelRoles,
        description="Roles served by other endpoints, as judge=openai:gpt-4.1,writer=pro, or a .yaml file of "
        "endpoints and roles (docs/models.md).",
    )
    flash_thinking: bool = Field(
        False, description="Enable thinking for the flash tier, which then ignores temperature."
    )
    pro_thinking: bool = Field(False, description="Enable thinking for the pro tier, which then ignores temperature.")
    thinking_tokens: PositiveInt = Field(
        16384,
        description="Tokens for hidden reasoning, beyond the limit of the stage, where thinking is on; at most half "
        "the context window.",
    )
    stage_tokens: StageTokens = Field(
        default_factory=dict,
        description="Maximum tokens of a stage's reply, for instance write=900,look_up=64; default: llm/stages.yaml.",
    )
    writer_temperature: Annotated[float, Field(ge=0.0, le=2.0)] = Field(
        0.0, description="Sampling temperature of every stage."
    )
    llm_timeout_seconds: PositiveFloat | None = Field(
        None,
        description="Time limit for one attempt of a call; a call that hangs is "
        "attempted up to three times. Default: 180, or 900 with the embedded model.",
    )
    llm_max_retries: Annotated[int, Field(ge=0, le=20)] = Field(
        3, description="Retries of a call that failed with 408, 409, 429, 5xx or a lost connection."
    )
    response_cache: bool = Field(True, description="Answer a repeated call from the local cache at no cost.")
    cost_limit_usd: Annotated[float, Field(gt=0.0)] | None = Field(
        None, description="Stop before a call that could raise the cost of this run above this many dollars."
    )

    # -- the loop
    max_metacognitive_rounds: Annotated[int, Field(ge=0, le=50)] = Field(
        5, description="Maximum number of repairs; the first draft is round 0."
    )
    monitor_policy: str = Field(
        "vote",
        description="When a draft is satisfactory: if a `vote` over routes elects its answer, `agreement` of its short "
        "answer with the second answer, or `paper` (cosine alone).",
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
        description="Plans beyond the question's grammar: none (`grammar`), or by `model`; default: `model`, `grammar` "
        "for the packaged model.",
    )
    loop_without: LoopParts = Field(
        (),
        description="Parts of the loop to disable (for ablations), joined by `+`: `derivation`, `grammar`, "
        "`plan_checks`, `operators`, `vote`, `search`; or `none`.",
    )
    operators_dir: PlacePath | None = Field(None, description="A folder with operators of your own for derivations.")
    routes_dir: PlacePath | None = Field(None, description="A folder with routes of your own.")
    monitor_calibration: PlacePath | None = Field(
        None, description="A file of `marag bench calibrate` that gives p_correct; default: the packaged one."
    )
    monitor_similarity_threshold: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        0.4, description="Cosine of the draft and the second answer at which the monitor is satisfied."
    )
    monitor_encoder: str = Field(
        "all-MiniLM-L6-v2", description="Encoder of the monitor, for which the threshold was set."
    )
    convergence_threshold: UnitFloat = Field(
        0.85,
        description="Jaccard similarity of consecutive answers at which the loop has converged.",
    )
    selection: Literal["best", "last"] = Field(
        "best", description="Which draft is returned: the best supported, or the last, as in the paper."
    )
    evidence_tokens: PositiveInt = Field(6000, description="Maximum number of evidence tokens in a prompt.")
    supplied_evidence: Literal["ranked", "whole"] = Field(
        "ranked",
        description="Evidence supplied with a question: `ranked` shows the best RETRIEVAL_TOP_K passages and "
        "searches the rest on demand, `whole` shows all of it.",
    )
    deficits_dir: PlacePath | None = Field(None, description="A folder with your own deficit files.")
    methods_dir: PlacePath | None = Field(
        None, description="A folder with benchmark methods of your own, each with its prompts beside it."
    )
    datasets_dir: PlacePath | None = Field(None, description="A folder with data sets of your own.")
    prompts_dir: PlacePath | None = Field(
        None, description="A folder with prompt files that replace the built-in ones of the same name."
    )

    self_consistency_samples: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="Chains of thought that the benchmark's `self_consistency` samples per question."
    )

    # -- answers from documents
    citation_style: Literal["page", "source", "title"] = Field(
        "page",
        description="How citations are written into an answer: title and page; the `source` with section, page and "
        "excerpt; or the title.",
    )
    unsupported_claims: Literal["mark", "drop"] = Field(
        "mark", description="Mark claims that no cited passage supports, or drop them (strict)."
    )
    claim_check: Literal["critic", "exact"] | None = Field(
        None,
        description="Who checks claims: the `critic`, in one call, or code alone (`exact`), which shows only what a "
        "passage says in the same words; default: `critic`, and `exact` with the packaged model.",
    )
    confidence_floor: UnitFloat = Field(
        0.5,
        description="A grounded answer is refused as not covered if 0.6 x retrieval + 0.4 x generation is lower.",
    )

    # -- the conversation
    memory_tokens: Annotated[int, Field(ge=200)] = Field(
        3000,
        description="Maximum tokens of a conversation shown in a prompt; beyond it, long answers are cut.",
    )

    # -- the coach
    scope_threshold: Annotated[float, Field(ge=-1.0, le=1.0)] = Field(
        0.05,
        description="How much nearer the corpus must be to a message than general questions are (difference of "
        "cosines), else the coach rejects it as off topic.",
    )
    coach_dir: PlacePath | None = Field(
        None,
        description="Folder with your own levels.yaml, words.yaml, generic.yaml or replies.yaml; an "
        "entry replaces the built-in entry of the same name.",
    )

    # -- retrieval
    retrieval_top_k: PositiveInt = Field(
        5,
        description="Number of passages that a search returns; unless it is set, a grounded answer from a corpus "
        "begins with up to 20, as EVIDENCE_TOKENS allows.",
    )
    retrieval_pool: PositiveInt = Field(50, description="Candidates that each store contributes before fusion.")
    rrf_k: PositiveInt = Field(60, description="The constant k of reciprocal rank fusion.")
    fusion: Literal["rrf", "blend"] = Field(
        "rrf", description="Reciprocal rank fusion, or a weighted blend of normalised scores with a floor."
    )
    blend_floor: UnitFloat = Field(
        0.33, description="Blended score below which a passage counts as irrelevant; only with FUSION=blend."
    )
    screening: bool = Field(
        True, description="Leave passages out of answers that read like orders to a language model, and report them."
    )
    links: bool = Field(True, description="Look for the next hop along titles that a retrieved passage mentions.")
    encoder: str = Field(
        "all-MiniLM-L6-v2",
        description="Encoder of passages: the packaged all-MiniLM-L6-v2 (8-bit weights), a model of the hub such as "
        "BAAI/bge-small-en-v1.5, or a folder; `fastembed:` or `torch:` before the name says what computes it.",
    )
    encoder_device: Device = Field(
        "auto",
        description="Where torch computes vectors: `auto` (a GPU if PyTorch finds one), `cpu`, `cuda`, `cuda:1` or "
        "`mps`; a GPU requires an encoder on torch.",
    )
    hf_token: Key | None = Field(
        None, description="Token for the Hugging Face hub (encoders, data sets); also silences its messages."
    )
    qdrant_url: Url | None = Field(None, description="Qdrant server, for instance http://127.0.0.1:6333.")
    qdrant_api_key: Key | None = Field(None, description="API key for QDRANT_URL, if it requires one.")
    elasticsearch_url: Url | None = Field(
        None, description="Elasticsearch server, for instance http://127.0.0.1:9200; set both servers or neither."
    )
    elasticsearch_api_key: Key | None = Field(None, description="API key for ELASTICSEARCH_URL, if it requires one.")

    # -- ingestion
    chunker: Literal["characters", "sentence"] = Field(
        "characters", description="How documents are split into passages: by length, or in whole sentences."
    )
    chunk_characters: Annotated[int, Field(ge=64, le=100_000)] = Field(512, description="Maximum length of a passage.")
    chunk_overlap: Annotated[int, Field(ge=0)] = Field(
        64, description="Characters that passages share with CHUNKER=characters; less than CHUNK_CHARACTERS."
    )
    ingest_file_mb: PositiveFloat = Field(
        64.0,
        description="Maximum size of an ingested file and of an upload, in MB; passage JSONL may be larger.",
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
        description="Questions that one key may ask in any minute; reads are counted separately against the "
        "same limit.",
    )
    audit_hot_days: PositiveInt = Field(
        90, description="Days after which `marag audit prune` removes prompts and raw replies from a record."
    )
    audit_warm_days: PositiveInt = Field(365, description="Days after which `marag audit prune` removes a record.")
    database_url: Key | None = Field(
        None,
        description="Database for keys and audit, as postgresql://NAME:PASSWORD@HOST/DATABASE; default: SQLite "
        "in the data folder.",
    )
    redis_url: Key | None = Field(
        None, description="Redis for rate limits across several workers, as redis://HOST:6379; default: in memory."
    )

    # -- the demo
    demo_visitor_usd: PositiveFloat = Field(
        0.25, description="Maximum spending per visitor of `marag demo`, in dollars, if the model has a known price."
    )
    demo_own_models: Literal["off", "public", "any"] = Field(
        "off",
        description="Whether visitors of `marag demo` may use a model of their own, whose key is kept until they "
        "leave: at `public` addresses, or at `any`, including those of your own network.",
    )

    # -- places
    marag_data_dir: PlacePath = Field(
        default_factory=lambda: user_data_path("marag", appauthor=False),
        description="Corpora, cache and ledger; default: the platform's user data folder.",
    )

    _from_file: frozenset[str] = PrivateAttr(frozenset())
    _assigned: frozenset[str] = PrivateAttr(frozenset())

    def model_post_init(self, context: object, /) -> None:
        """Note which addresses come from `.env`."""
        file = {name.upper() for name, value in dotenv_values(_WORKING_FOLDER_ENV).items() if value}
        self._from_file = frozenset({"LLM_BASE_URL", "MODEL_ROLES"} & file - set(map(str.upper, os.environ)))

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
        if isinstance(dotenv_settings, DotEnvSettingsSource):
            _warn_of_slips(dotenv_settings.env_vars, cls.model_fields)
        if isinstance(dotenv_settings, DotEnvSettingsSource) and isinstance(env_settings, EnvSettingsSource):
            given = set(init_settings()) | set(env_settings.env_vars)
            emptied = {name.lower() for name, value in os.environ.items() if not value}
            found = {name: value for name, value in dotenv_settings.env_vars.items() if name not in emptied}
            env_settings.env_vars, dotenv_settings.env_vars = _trusted(env_settings.env_vars, found, given)
        return init_settings, env_settings, dotenv_settings

    def secret(self, variable: str, *, by: str | None = None) -> SecretStr | None:
        """A key by the name of its variable: that of a setting, or any other in the environment and `.env`.

        `by` is the setting that sends it to another address, LLM_BASE_URL or MODEL_ROLES; if that comes from `.env`, so
        must the key.
        """
        with _malformed_lines():
            file = dotenv_values(_WORKING_FOLDER_ENV)
        value = {name.upper(): value for name, value in file.items()}.get(variable)
        if by in self._from_file and variable not in self._assigned:
            if not value and variable in os.environ:
                _warn_once(
                    f"{by} in .env names an address for the key {variable}, which is not in .env and is not sent; set "
                    f"{by} in the environment or with --set."
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
            with _malformed_lines():
                settings = cls(**values)  # type: ignore[arg-type]  # names and values are checked by pydantic
            settings._assigned = frozenset(name.upper() for name in values)
            settings._from_file -= settings._assigned
            return settings
        except ValidationError as error:
            raise SettingsError(_fault(error, cls.model_fields)) from None
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


def _fault(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """One sentence for the first rejected setting: its name, its value (secrets hidden), what to do."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    secret = name.endswith("_url") or (name in fields and "SecretStr" in str(fields[name].annotation))
    verdict = "has an invalid value" if secret else f"cannot be {first['input']!r}"
    return f"The setting {name.upper()} {verdict}: {fault_words(first)}."


def nearest_setting(name: str, known: Collection[str]) -> str | None:
    """The known name that this one may be a misspelling of; `None` if unlike any, or if it has an additional word."""
    found = get_close_matches(name, known, n=1, cutoff=_CLOSE)
    if not found or set(found[0].split("_")) < set(name.split("_")):  # e.g. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
        return None
    return found[0]


def _warn_of_slips(written: Collection[str], known: Collection[str]) -> None:
    """Log each name in `.env` that is unknown but similar to a setting that is not set there, once per process."""
    for name in written:
        meant = None if name in known else nearest_setting(name, known)
        if meant is not None and meant not in written:
            _warn_once(f"Unknown setting {name.upper()} in .env is ignored; did you mean {meant.upper()}?")


@contextmanager
def _malformed_lines() -> Iterator[None]:
    """Warn of malformed lines in `.env` in our own words."""

    def said(record: logging.LogRecord) -> bool:
        number = record.args[0] if isinstance(record.args, tuple) and record.args else "?"
        _warn_once(f"Line {number} of .env is not NAME=VALUE and is ignored; correct it.")
        return False

    log = logging.getLogger("dotenv.main")
    log.addFilter(said)
    try:
        yield
    finally:
        log.removeFilter(said)


@cache  # warns once, although settings are read several times in a process
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)


def _assigned(assignments: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        field = name.strip().lower()
        if not equals:
            raise SettingsError(f"--set {assignment!r} has no value; write it as NAME=VALUE.")
        if field not in Settings.model_fields:
            meant = nearest_setting(field, Settings.model_fields)
            near = f" (did you mean {meant.upper()}?)" if meant else ""
            raise SettingsError(f"There is no setting {name.strip()!r}{near}; `marag config show` lists them.")
        default = Settings.model_fields[field].get_default(call_default_factory=True)
        values[field] = value.strip() or default
    return values


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
    """Every setting as (environment name, description, default), in the order of the class."""
    return [
        (name.upper(), field.description or "", None if field.default_factory else field.default)
        for name, field in Settings.model_fields.items()
    ]
