"""The rows of a run: a method, and what is varied about it.

A sweep, an ablation and an oracle are all the same thing: a method with one change, under a name that states it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.monitor import policy
from meta_agent_rag.errors import InputError, SettingsError
from meta_agent_rag.llm.stages import check_stages
from meta_agent_rag.prompts import prompt, prompt_names
from meta_agent_rag.settings import Settings

from ..methods import Method

ORACLES = ("monitor", "diagnosis", "retrieval")
EQUALS = ("tokens",)
_SWEPT = (
    *("flash_model", "pro_model", "tiers", "model_roles"),
    *("flash_thinking", "pro_thinking", "thinking_tokens", "stage_tokens", "writer_temperature"),
    *(
        "max_metacognitive_rounds",
        "monitor_policy",
        "diagnosis",
        "monitor_calibration",
        "monitor_similarity_threshold",
    ),
    *("monitor_encoder", "convergence_threshold", "selection", "evidence_tokens"),
    *("supplied_evidence", "loop_without"),
    *("plans", "routes", "deficits_dir", "prompts_dir", "self_consistency_samples"),
    *("retrieval_top_k", "retrieval_pool", "rrf_k", "fusion", "blend_floor", "links"),
)
"""Settings that a row can override: those that shape an answer. Others choose a server or a corpus."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of the table, under a name that is unique in a run.

    `assignments` are `SETTING=VALUE`; `oracles` are the stages replaced by the data set's gold information; with
    `equal` ("tokens") the method samples until it has spent as many tokens as the loop on the same question.
    """

    method: Method
    assignments: tuple[str, ...] = ()
    without_deficits: tuple[str, ...] = ()
    oracles: tuple[str, ...] = ()
    equal: str = ""

    @property
    def variant(self) -> str:
        """What is varied, in words; empty for the unchanged method."""
        parts = list(self.assignments)
        if self.without_deficits:
            parts.append(f"without {'+'.join(self.without_deficits)}")
        if self.oracles:
            parts.append(f"oracle {'+'.join(self.oracles)}")
        if self.equal:
            parts.append(f"equal {self.equal}")
        return " ".join(parts)

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.method.name} {self.variant}".strip()


def arms(
    methods: Sequence[Method],
    *,
    sweeps: Sequence[str] = (),
    ablations: Sequence[str] = (),
    oracles: Sequence[str] = (),
    equals: Sequence[str] = (),
) -> tuple[Arm, ...]:
    """All rows of a run.

    `sweeps` are `SETTING=V1,V2,...`, with one row per combination of values. `ablations` are deficits to
    leave out (several at once joined by commas), and `oracles` are stages: each is a row beside the unchanged
    method, and several oracles also form one row together. Both apply only to methods that run the loop. `equals`
    (`tokens`) adds, for sampling methods, a row that spends as much as the loop.
    Raises `InputError` for what cannot be varied.
    """
    swept = list(product(*(_values(sweep) for sweep in sweeps)))
    fields = [assignment.partition("=")[0] for assignment in swept[0]]
    if len(set(fields)) < len(fields):
        raise InputError("--sweep names a setting twice; give all its values at once, as SETTING=V1,V2,V3.")
    _require_known("--equal", equals, EQUALS)
    _require_known("The oracle", oracles, ORACLES)
    known = tuple(name for name in ORACLES if name in oracles)
    stages = [*((name,) for name in known), *([known] if len(known) > 1 else [])]
    left_out = [tuple(name.strip() for name in one.split(",") if name.strip()) for one in ablations]
    rows: list[Arm] = []
    for method in methods:
        if pinned := [field for field in fields if field.lower() in dict(method.pins)]:
            raise InputError(
                f"{pinned[0]} is fixed by {method.name!r} and cannot be swept with it; leave that method out."
            )
        for assignments in swept:
            plain = Arm(method=method, assignments=assignments)
            rows.append(plain)
            if method.loop:
                rows += [replace(plain, without_deficits=names) for names in left_out]
                rows += [replace(plain, oracles=names) for names in stages]
            if method.samples:
                rows += [replace(plain, equal=kind) for kind in equals]
    if equals and not any(arm.equal and reference(arm, rows) for arm in rows):
        raise InputError(
            "--equal compares a sampling method with the loop; name both, as --method metarag,self_consistency."
        )
    if (ablations or oracles) and not any(method.loop for method in methods):
        raise InputError(
            "--without-deficit and --oracle vary the loop; name a method that runs the loop, such as metarag."
        )
    if len({arm.name for arm in rows}) < len(rows):
        raise InputError("--sweep, --without-deficit or --oracle repeats a value; give each once.")
    return tuple(rows)


def reference(arm: Arm, rows: Sequence[Arm]) -> Arm | None:
    """The row whose spending an equal-cost row matches: the first that runs the loop under the same settings."""
    same = (one for one in rows if one.assignments == arm.assignments)
    return next((one for one in same if one.method.loop and not one.without_deficits and not one.oracles), None)


def check_arms(rows: Sequence[Arm], settings: Settings) -> None:
    """Refuse invalid values, unknown deficits and identical rows before anything is paid."""
    seen: dict[str, str] = {}
    for arm in rows:
        own = arm_settings(arm, settings)
        check_stages(own)
        policy(own)
        for name in prompt_names(own.methods_dir):
            prompt(name, own.prompts_dir, methods=own.methods_dir)
        deficits = discover_deficits(own.deficits_dir)
        if arm.without_deficits:
            deficits.without(arm.without_deficits)
        same = f"{arm.method.name} {arm.without_deficits} {arm.oracles} {arm.equal} {own.model_dump_json()}"
        if same in seen:
            raise InputError(f"The rows {seen[same]!r} and {arm.name!r} would be identical; give each value once.")
        seen[same] = arm.name


def arm_settings(arm: Arm, settings: Settings) -> Settings:
    """The settings of a row: those of the run, with the row's own values and those pinned by its method."""
    own = Settings.load(arm.assignments) if arm.assignments else settings
    names = [assignment.partition("=")[0].strip().lower() for assignment in arm.assignments]
    return settings.model_copy(update={**{name: getattr(own, name) for name in names}, **dict(arm.method.pins)})


def _require_known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"{what} {name!r} is unknown; choose from: {', '.join(known)}.")


def _values(sweep: str) -> list[str]:
    name, equals, values = sweep.partition("=")
    field, given = name.strip().lower(), [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not given:
        raise InputError(f"--sweep {sweep!r} has no values; write it as SETTING=V1,V2.")
    if field not in Settings.model_fields:
        raise SettingsError(f"--sweep names the unknown setting {name.strip()!r}; `marag config show` lists all.")
    if field not in _SWEPT:
        raise InputError(
            f"{field.upper()} cannot be swept within one run; run each value and compare the runs "
            "with `marag bench compare`."
        )
    return [f"{field.upper()}={value}" for value in given]
