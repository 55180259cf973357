"""Score another system's predictions as a run of ours: `python -m benchmarks.import --help`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, discover, load_questions
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from .predictions import MODE, imported
from .recording import recorded_method
from .report.document import write_report
from .report.published import SCORER
from .rows.summary import summarise
from .run.arms import Arm
from .run.config import RunConfig
from .run.folder import SUMMARY, RunFolder
from .tables import with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_THEIRS = "the system's own"


@app.command()
@reporting
def main(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The predictions.")],
    dataset: Annotated[str, typer.Option(help="The data set that the predictions are for.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The system's name; default: the file's name.")
    ] = None,
    data_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The questions, instead of the hub's.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None,
    aliases: Annotated[Path | None, typer.Option(metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the confidence intervals.")] = 42,
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are written.")] = Path("RESULTS"),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score predictions of another system with our scorer and intervals, as a run that `compare` takes.

    Supported are FlashRAG's, MOTHRAG's and HippoRAG's files, HotpotQA's official predictions, {id: answer}, and rows
    of {"id" or "question", "prediction"}.
    """
    settings = Settings.load()
    access = HubAccess(token=settings.hf_token, revision=revision)
    registry = discover(settings.datasets_dir)
    loaded = load_questions(dataset, data_file=data_file, aliases_file=aliases, registry=registry, access=access)
    system = imported(file, loaded.questions, name=name or file.name.partition(".")[0])
    names, n = (system.name,), len(system.rows)
    experiment = {"dataset": dataset, "mode": MODE, "methods": [*names], "n": n, "seed": seed, "revision": revision}
    about: dict[str, Any] = {
        "experiment": experiment,
        "revision": loaded.revision,
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {"name": MODE, "base_url": None, "models": {}, "embedded_model": None},
        "deficits": [],
        "settings": {},
        "imported": {"name": system.name, "file": file.name, "sha256": system.sha256},
    }
    folder = RunFolder.create(output_dir, at=datetime.now(UTC), dataset=dataset, mode=MODE, config=about)
    for row in system.rows:
        folder.add(row)
    folder.close()
    arms = (Arm(method=recorded_method(system.name)),)
    summary = summarise(system.rows, dataset=dataset, mode=MODE, arms=arms, n=n, seed=seed, deficits={})
    folder.write_json(SUMMARY, summary)
    none_asked = Settings.load(llm_base_url="http://127.0.0.1", flash_model=_THEIRS)
    config = RunConfig(dataset=dataset, mode=MODE, seed=seed, settings=none_asked, methods=names, model_words=_THEIRS)
    protocol = {"data set": dataset, "questions": str(n), "scorer": SCORER, "evidence and model": _THEIRS}
    write_report(folder, config, summary, system.rows, arms=arms, protocol=protocol, plots=plots)
    if as_json:
        print_json({"run": str(folder.path), "summary": summary})
        return
    lacking = len(loaded.questions) - n
    other = f", none for {counted(lacking, 'question')}" if lacking else ""
    other += f", {system.unknown} for other questions left out" if system.unknown else ""
    figures = summary["methods"][system.name]
    scores = "  ".join(f"{one.upper()} {with_interval(figures[one], figures[f'{one}_ci95'])}" for one in ("em", "f1"))
    say(f"{system.name}: {n} predictions{other}; {scores}")
    say(f"Run folder: {folder.path}")


if __name__ == "__main__":
    app()
