"""The benchmark: figures that can be repeated, resumed, compared and read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from benchmarks.metrics import score_answer
from tests.acceptance.doors import ROOT, SAMPLE_RECORD, Fact, Model, a_run, bench, jsonl, marag, printed

QUESTIONS = ROOT / "benchmarks" / "sample" / "questions.json"
ROWS: list[dict[str, Any]] = json.loads(QUESTIONS.read_text("utf-8"))
QUICK = ("--dataset", "sample", "--display", "none", "--no-plots")


@pytest.fixture(autouse=True)
def knowing(model: Model) -> None:
    """A model that knows the answers of the sample, from memory."""
    model.facts = [
        Fact(
            asked=row["question"],
            quote=row["context"][0][1][0].strip(),
            said=f"{row['answer']} [n].",
            short=row["answer"],
            looks=False,
        )
        for row in ROWS
    ]


def run(*words: str, folder: str = "RESULTS") -> tuple[Result, Path]:
    """A run of the sample, and its folder."""
    done = bench("runner", *QUICK, "--output-dir", folder, *words)
    assert done.exit_code == 0, done.output
    return done, a_run(Path(folder))


def refused(*words: str) -> str:
    """What is said to wrong input."""
    done = bench("runner", *QUICK, *words)
    assert done.exit_code == 2, done.output
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.mark.parametrize("mode", ["gold", "supporting", "open_domain"])
def test_a_run_leaves_summary_samples_predictions_calls_and_report(mode: str) -> None:
    _, folder = run("--mode", mode, "--n", "2", "--method", "metarag,standard_rag")
    for name in ("config.json", "samples.jsonl", "predictions.json", "calls.jsonl", "summary.json", "report.md"):
        assert (folder / name).stat().st_size > 0, name
    found = summary(folder)
    assert (found["dataset"], found["mode"], found["n"], found["seed"]) == ("sample", mode, 2, 42)
    row = found["methods"]["metarag"]
    assert {
        "em",
        "f1",
        "precision",
        "recall",
        "em_ci95",
        "f1_ci95",
        "llm_calls",
        "tokens",
        "cost_usd",
        "rounds_mean",
    } <= set(row)
    assert {"trigger_rate", "stop_reasons", "deficits", "fixed", "broken", "answered", "errors"} <= set(row)
    assert set(row["latency_s"]) >= {"p50", "p75", "p90", "p99"}
    sample = jsonl(folder / "samples.jsonl")[0]
    assert {"id", "method", "question", "gold", "prediction", "em", "f1", "rounds", "error"} <= set(sample)


def test_a_right_answer_scores_100(model: Model) -> None:
    _, folder = run("--n", "3", "--method", "standard_rag")
    assert summary(folder)["methods"]["standard_rag"]["em"] == 100.0


def test_all_methods_run_over_the_same_questions() -> None:
    _, folder = run("--n", "1", "--method", "all", "--mode", "supporting")
    methods = summary(folder)["methods"]
    for name in ("closed_book", "chain_of_thought", "standard_rag", "react", "flare", "ircot", "self_ask", "reflexion"):
        assert methods[name]["n"] == 1, name
    assert {"self_consistency", "metarag", "metarag_paper"} <= set(methods)
    assert len({row["id"] for row in jsonl(folder / "samples.jsonl")}) == 1


@pytest.mark.parametrize(
    ("prediction", "golds", "em", "f1"),
    [
        ("The Eiffel Tower", ["Eiffel Tower"], 1.0, 1.0),
        ("yes", ["no"], 0.0, 0.0),
        ("yes it is", ["yes"], 0.0, 0.0),
        ("Ada Lind of Oslo", ["Ada Lind"], 0.0, 2 * 0.5 * 1 / 1.5),
        ("Oslo", ["Bergen", "Oslo"], 1.0, 1.0),
        ("", ["Oslo"], 0.0, 0.0),
    ],
)
def test_scores_are_those_of_the_official_script(prediction: str, golds: list[str], em: float, f1: float) -> None:
    score = score_answer(prediction, golds)
    assert score.em == em
    assert score.f1 == pytest.approx(f1)


def test_the_recorded_run_replays_without_a_model_to_the_same_bytes(model: Model) -> None:
    done, folder = bench("runner", "--replay", str(SAMPLE_RECORD), "--display", "plain", "--no-plots"), Path("RESULTS")
    assert done.exit_code == 0, done.output
    assert "byte for byte" in done.output.replace("\n", " ")
    assert summary(a_run(folder))["methods"]["metarag"]["n"] == 10
    assert model.bodies == []


def test_a_recorded_run_can_be_replayed(model: Model) -> None:
    _, folder = run("--n", "2", "--record", "mine.jsonl.gz", folder="first")
    calls = len(model.bodies)
    done = bench("runner", "--replay", "mine.jsonl.gz", "--display", "none", "--no-plots", "--output-dir", "second")
    assert done.exit_code == 0, done.output
    assert len(model.bodies) == calls
    assert (a_run(Path("second")) / "summary.json").read_bytes() == (folder / "summary.json").read_bytes()


def test_a_limit_on_costs_stops_a_run_that_resumes(model: Model) -> None:
    stopped = bench(
        "runner", *QUICK, "--n", "4", "--method", "standard_rag", "--cost-limit", "0.0008", "--concurrency", "1"
    )
    assert "--resume" in stopped.output
    folder = a_run(Path("RESULTS"))
    assert len(model.bodies) < 4
    done = bench("runner", "--resume", str(folder), "--cost-limit", "1", "--display", "none", "--no-plots")
    assert done.exit_code == 0, done.output
    rows = jsonl(folder / "samples.jsonl")
    assert len({row["id"] for row in rows if not row["error"]}) == 4


def test_a_finished_question_is_not_asked_again(model: Model) -> None:
    _, folder = run("--n", "2", "--method", "standard_rag")
    calls = len(model.bodies)
    assert bench("runner", "--resume", str(folder), "--display", "none", "--no-plots").exit_code == 0
    assert len(model.bodies) == calls


def test_a_repeated_run_is_answered_from_the_response_cache(model: Model) -> None:
    words = ("--n", "2", "--method", "standard_rag", "--set", "RESPONSE_CACHE=true")
    run(*words, folder="first")
    calls = len(model.bodies)
    _, folder = run(*words, folder="second")
    assert len(model.bodies) == calls
    assert all(float(row["paid_usd"]) == 0 for row in jsonl(folder / "calls.jsonl"))


def test_failures_are_counted_and_listed_and_never_dropped(model: Model) -> None:
    model.status = 500
    done = bench("runner", *QUICK, "--n", "2", "--method", "standard_rag")
    folder = a_run(Path("RESULTS"))
    assert done.exit_code == 1 or summary(folder)["methods"]["standard_rag"]["errors"] == 2
    samples = folder / "samples.jsonl"
    assert not any(row["prediction"] for row in (jsonl(samples) if samples.exists() else []))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "0"), "--n"),
        (("--method", "guessing"), "guessing"),
        (("--dataset", "nowhere"), "nowhere"),
        (("--data-file", "missing.json"), "missing.json"),
    ],
)
def test_wrong_input_gets_one_sentence_and_exit_code_2(words: tuple[str, ...], said: str) -> None:
    assert said in refused(*words)


def test_a_malformed_row_is_named_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps([{**ROWS[0], "context": 7}]))
    said = refused("--dataset", "hotpotqa", "--data-file", "bad.json")
    assert "context" in said
    assert "1" in said


def test_hotpotqa_2wiki_and_musique_are_read_from_their_official_files(tmp_path: Path) -> None:
    (tmp_path / "hotpot.json").write_text(json.dumps(ROWS[:2]))
    musique = {
        "id": "2hop__1_2",
        "question": ROWS[0]["question"],
        "answer": ROWS[0]["answer"],
        "answer_aliases": [],
        "answerable": True,
        "question_decomposition": [],
        "paragraphs": [{"idx": 0, "title": "A", "paragraph_text": "A is a bridge.", "is_supporting": True}],
    }
    (tmp_path / "musique.jsonl").write_text(json.dumps(musique) + "\n")
    for name, file in (("hotpotqa", "hotpot.json"), ("2wikimultihopqa", "hotpot.json"), ("musique", "musique.jsonl")):
        words = ("--dataset", name, "--data-file", file, "--n", "1", "--method", "standard_rag", "--output-dir", name)
        done = bench("runner", "--display", "none", "--no-plots", *words)
        assert done.exit_code == 0, done.output
        assert summary(a_run(Path(name)))["methods"]["standard_rag"]["answered"] == 1


def test_a_sweep_gives_a_row_for_every_value() -> None:
    _, folder = run("--n", "1", "--sweep", "RETRIEVAL_TOP_K=1,2", "--method", "metarag")
    assert len(summary(folder)["methods"]) == 2


def test_an_ablation_gives_a_row_without_the_deficit() -> None:
    _, folder = run("--n", "1", "--without-deficit", "internal_only")
    assert any("internal_only" in name for name in summary(folder)["methods"])


def test_an_oracle_replaces_a_stage() -> None:
    _, folder = run("--n", "1", "--oracle", "retrieval")
    assert len(summary(folder)["methods"]) == 2


def test_a_dry_run_estimates_calls_and_dollars_without_a_call(model: Model) -> None:
    run("--n", "2", "--method", "standard_rag")
    calls = len(model.bodies)
    told = bench("runner", *QUICK, "--n", "4", "--method", "standard_rag", "--dry-run", "--display", "plain")
    assert told.exit_code == 0, told.output
    assert "USD" in told.output
    assert len(model.bodies) == calls


def test_two_methods_are_compared_by_paired_tests() -> None:
    _, folder = run("--n", "3", "--method", "metarag,standard_rag")
    told = bench("compare", str(folder))
    assert told.exit_code == 0, told.output
    assert "McNemar" in told.output
    assert "EM" in told.output


def test_predictions_of_other_systems_get_the_same_scores() -> None:
    lines = [json.dumps({"id": row["_id"], "prediction": row["answer"]}) for row in ROWS[:3]]
    Path("theirs.jsonl").write_text("\n".join(lines))
    told = bench("import", "theirs.jsonl", "--dataset", "sample", "--no-plots")
    assert told.exit_code == 0, told.output
    assert "100.0" in told.output


def test_shards_merge_into_one_run() -> None:
    _, whole = run("--n", "4", "--method", "standard_rag", folder="whole")
    parts = [
        run("--n", "4", "--method", "standard_rag", "--shard", f"{one}/2", folder=f"part{one}")[1] for one in (1, 2)
    ]
    done = bench("merge", *map(str, parts), "--output-dir", "merged")
    assert done.exit_code == 0, done.output
    figures = [summary(folder)["methods"]["standard_rag"] for folder in (whole, a_run(Path("merged")))]
    assert figures[0]["em"] == figures[1]["em"]
    assert figures[0]["n"] == figures[1]["n"] == 4


def test_the_report_opens_with_a_sentence_that_states_the_result_and_its_interval() -> None:
    _, folder = run("--n", "3", "--method", "metarag,standard_rag")
    report = (folder / "report.md").read_text()
    opening = report.partition("\n## ")[0]
    assert re.search(r"F1|EM", opening)
    assert "metarag" in opening


def test_the_report_shows_the_figures_of_the_paper_as_of_another_protocol(tmp_path: Path) -> None:
    (tmp_path / "hotpot.json").write_text(json.dumps(ROWS[:2]))
    words = ("--dataset", "hotpotqa", "--data-file", "hotpot.json", "--n", "2", "--display", "none", "--no-plots")
    assert bench("runner", *words).exit_code == 0
    report = (a_run(Path("RESULTS")) / "report.md").read_text()
    assert "37.8" in report
    assert "protocol" in report.casefold()


def test_a_run_can_be_read_question_by_question() -> None:
    _, folder = run("--n", "1")
    (row,) = jsonl(folder / "samples.jsonl")
    assert row["question"] in " ".join(marag("trace", str(folder)).stdout.split())
    assert "draft" in marag("trace", str(folder), row["id"]).stdout


def test_the_key_is_nowhere_in_the_run_folder() -> None:
    _, folder = run("--n", "1")
    assert not any(b"sk-acceptance" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_recall_of_retrieval_is_measured_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"p{n}", "title": f"Lake {n}", "text": f"Lake {n} has {n} islands."}) + "\n"
            for n in range(30)
        )
    )
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "How many islands has Lake 7?"}) + "\n")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tp7\t1\n")
    words = ("retrieval", "--corpus-dir", str(tmp_path), "--encoder", "hash-64", "--repeats", "1", "--json")
    done = marag("bench", "speed", *words)
    found = printed(done)
    assert found["recall@5"] == 100.0
    assert {"recall@2", "recall@10", "all@5", "ndcg@10", "p50_ms", "p95_ms", "index_passages_per_s", "ablation"} <= set(
        found
    )
