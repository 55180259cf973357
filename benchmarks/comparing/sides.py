"""One side of a comparison: scored answers and their protocol, from a run or from a prediction file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, StrictInt, StrictStr

from meta_agent_rag.datasets import LoadedQuestions, Question
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import UnitFloat

from ..importing.files import imported
from ..metrics import AnswerScore, score_answer
from ..rows.past_run import PastRun, Row

NOTHING = AnswerScore(em=0.0, f1=0.0, precision=0.0, recall=0.0)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A question with one side's answer; if it failed, `prediction` is `None` and the score 0."""

    id: str
    question: str
    golds: tuple[str, ...]
    type: str | None
    hops: int | None
    prediction: str | None
    score: AnswerScore


@dataclass(frozen=True, kw_only=True)
class Side:
    """Answers by question id, under a name; `protocol` describes by aspect, in words, how they were produced.

    `unknown` counts predictions for questions that the data set does not have.
    """

    name: str
    source: str
    dataset: str
    answers: Mapping[str, Scored]
    protocol: Mapping[str, str]
    unknown: int = 0


def run_side(run: PastRun, method: str | None) -> Side:
    """A method of a run; without a name, the run's only method.

    Raises `InputError` if the run has several and none is named, or lacks the named one.
    """
    if method is None:
        if len(run.methods) > 1:
            raise InputError(
                f"The run {run.name!r} has several methods ({', '.join(run.methods)}); "
                "name one of them with --method-a or --method-b."
            )
        method = next(iter(run.methods))
    answers = {row["id"]: _scored_row(run, row) for row in run.rows(method)}
    protocol = {**_run_protocol(run), **_models(run.rows(method))}
    return Side(name=method, source=f"run {run.name}", dataset=run.dataset, answers=answers, protocol=protocol)


def pooled(sides: Sequence[Side]) -> Side:
    """One method's answers from several runs as one side, with the data set in place of the question type.

    Raises `InputError` if two of the runs contain the same question.
    """
    held = Counter((side.dataset, id_) for side in sides for id_ in side.answers)
    twice = [f"{dataset} {id_}" for (dataset, id_), times in held.items() if times > 1]
    if twice:
        raise InputError(
            f"Two of the pooled runs share questions ({twice[0]!r} and {len(twice) - 1} more); "
            "pool runs over different questions."
        )
    aspects = dict.fromkeys(aspect for side in sides for aspect in side.protocol)
    stated = {aspect: dict.fromkeys(side.protocol.get(aspect, "not stated") for side in sides) for aspect in aspects}
    return Side(
        name=sides[0].name,
        source=" and ".join(side.source for side in sides),
        dataset=" and ".join(dict.fromkeys(side.dataset for side in sides)),
        answers={
            f"{side.dataset} {id_}": replace(scored, id=f"{side.dataset} {id_}", type=side.dataset)
            for side in sides
            for id_, scored in side.answers.items()
        },
        protocol={aspect: " | ".join(values) for aspect, values in stated.items()},
    )


class _Asked(BaseModel, frozen=True):
    question: StrictStr
    gold: StrictStr
    aliases: tuple[StrictStr, ...] = ()
    type: StrictStr | None = None
    hops: StrictInt | None = None


class _Answered(_Asked):
    prediction: StrictStr
    em: UnitFloat
    f1: UnitFloat
    precision: UnitFloat
    recall: UnitFloat

    @property
    def score(self) -> AnswerScore:
        return AnswerScore(em=self.em, f1=self.f1, precision=self.precision, recall=self.recall)


def _scored_row(run: PastRun, row: Row) -> Scored:
    answered = run.checked(row, _Answered) if row["error"] is None else None
    asked = answered or run.checked(row, _Asked)
    return Scored(
        id=row["id"],
        question=asked.question,
        golds=tuple(dict.fromkeys((asked.gold, *asked.aliases))),
        type=asked.type,
        hops=asked.hops,
        prediction=None if answered is None else answered.prediction,
        score=NOTHING if answered is None else answered.score,
    )


_SAMPLE = ("n", "limit", "seed", "sample_ids")
_APART = {"dataset", "methods", "data_file", "aliases_file", "judge", "repeats", *_SAMPLE}
"""Fields of an experiment that are described elsewhere, that are being compared, or that change no answer."""
_IN_OTHER_WORDS = {
    "llm_provider",
    "llm_base_url",
    "flash_model",
    "pro_model",
    "model_roles",
    "embedded_model",
    "embedded_model_path",
    "monitor_calibration",
}
_NO_MATTER = {
    "cost_limit_usd",
    "hf_token",
    "llm_max_retries",
    "llm_timeout_seconds",
    "marag_data_dir",
    "price_as",
    "response_cache",
}


def _run_protocol(run: PastRun) -> Mapping[str, str]:
    """How a run was measured, by aspect; two runs with equal descriptions have the same protocol."""
    config, experiment = run.config, run.config["experiment"]
    provider, data = config["provider"], config["dataset"]
    models = provider.get("embedded_model") or ", ".join(f"{tier} {name}" for tier, name in provider["models"].items())
    settings = {
        f"setting {name.upper()}": str(value)
        for name, value in sorted(config["settings"].items())
        if name not in _IN_OTHER_WORDS | _NO_MATTER and not name.endswith(("_key", "_token"))
    }
    return {
        "data file": f"{data['source']} (SHA-256 {str(data['sha256'])[:12]})",
        "aliases": str(data.get("aliases_sha256") or "none")[:12],
        "sample": ", ".join(f"{name} {_words(experiment[name])}" for name in _SAMPLE if _given(experiment.get(name))),
        "model": f"{models} at {provider['name']}",
        **{f"role {role}": _endpoint(one) for role, one in sorted((config.get("endpoints") or {}).items())},
        **{name.replace("_", " "): _words(value) for name, value in sorted(experiment.items()) if name not in _APART},
        "deficits": ", ".join(sorted(config["deficits"])),
        **{f"encoder {name}": _words(value) for name, value in sorted((config.get("encoders") or {}).items())},
        "calibration": _calibration(config),
        **settings,
        "commit": _commit(config.get("commit")),
    }


def _models(rows: Sequence[Row]) -> dict[str, str]:
    """The models that a method's calls went to, if its rows state them: methods of one run may differ."""
    models = {call["model"] for row in rows for call in row.get("usage", ()) if "model" in call}
    return {"models of the calls": ", ".join(sorted(models))} if models else {}


def _endpoint(endpoint: Mapping[str, Any]) -> str:
    """Provider, model and what the server reported about itself, without its address."""
    identity = str(endpoint.get("identity") or "")
    known = "" if "//" in identity or not identity else f" ({identity})"
    return f"{endpoint.get('model')} at {endpoint.get('provider')}{known}"


def _calibration(config: Mapping[str, Any]) -> str:
    """The digest of the file, which may be refitted under the same path; for runs without a digest, the path."""
    if "calibration" in config:
        return _words(config["calibration"])
    path = config["settings"].get("monitor_calibration")
    return "none" if path is None else f"{path}, contents unknown"


def _commit(given: str | None) -> str:
    """The first 12 digits, with a mark if the checkout had changed files."""
    if given is None:
        return "none"
    head, dash, mark = given.partition("-")
    return f"{head[:12]}{dash}{mark}"


def _given(value: object) -> bool:
    return value is not None and value != []


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def file_side(path: Path, loaded: LoadedQuestions, dataset: str) -> Side:
    """The predictions of a file, scored against the questions of a data set; a null prediction counts as failed.

    The file is of any schema that `benchmarks.import` reads. Raises `DataFileError` with the file and the row.
    """
    read = imported(path, loaded.questions, name=path.name)
    answers = {
        question.id: _scored_prediction(question, read.predictions[question.id].text)
        for question in loaded.questions
        if question.id in read.predictions
    }
    return Side(
        name=path.name,
        source=str(path),
        dataset=dataset,
        answers=answers,
        protocol={"data file": f"{loaded.source} (SHA-256 {loaded.sha256[:12]})"},
        unknown=read.unknown,
    )


def _scored_prediction(question: Question, prediction: str | None) -> Scored:
    return Scored(
        id=question.id,
        question=question.text,
        golds=question.golds,
        type=question.type,
        hops=question.hops,
        prediction=prediction,
        score=NOTHING if prediction is None else score_answer(prediction, question.golds),
    )
