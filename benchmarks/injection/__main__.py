"""Train and evaluate the detector of injected instructions: `python -m benchmarks.injection --help`.

Texts are JSON lines with `text` and `kind`. Attack kinds that address the model explicitly are distinguished from plain
requests, which no wording gives away.
"""

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from meta_agent_rag.cli.shared.command import print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.screening import injection_classifier
from meta_agent_rag.retrieval.screening.guardrails import ORDER, injections
from meta_agent_rag.text.sentences import sentences

from . import held_out
from .obedience import attack_passage, outcomes_of, sample
from .sources import OVERRIDES, LabelledText, descriptions, docstrings, messages, paragraphs, read, usable
from .training import Windows, fit, made_attacks, made_harmless, written_attacks, written_harmless

_PACKAGED = Path(injection_classifier.__file__).with_name("injection_classifier.npz")
_PARAGRAPHS, _DOCSTRINGS, _MESSAGES, _PROSE = 4000, 5000, 1000, 1000

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Attacks = Annotated[Path, typer.Option(help="Attacks, as JSON Lines with `text` and `kind`, or YAML by kind.")]
Benign = Annotated[Path, typer.Option(help="Harmless texts, in the same format.")]
Paragraphs = Annotated[Path, typer.Option(help="Harmless paragraphs, as JSON Lines with `title` and `text`.")]
Catalogues = Annotated[Path | None, typer.Option(help="A folder of gettext catalogues, e.g. /usr/share/locale.")]
By = Annotated[str, typer.Option(help="What to hold out of the generated attacks: frame, goal or language.")]


@app.command()
@reporting
def train(
    attacks: Attacks,
    benign: Benign,
    paragraphs: Paragraphs,
    catalogues: Catalogues = None,
    output: Annotated[Path, typer.Option(help="Where to write the model.")] = _PACKAGED,
) -> None:
    """Train the model on all texts, with a threshold from models trained without each text's frame or source."""
    texts, windows = _given(attacks, benign, paragraphs, catalogues)
    scores = held_out.scores(texts, windows, "frame")
    threshold = held_out.threshold(texts, scores)
    _report(texts, scores > threshold, "frame")
    fit(texts, windows, np.arange(len(texts))).save(output, threshold)
    say(f"threshold {threshold:.2f}; wrote {output.name}, {output.stat().st_size / 1000:.0f} KB")


@app.command()
@reporting
def unseen(
    attacks: Attacks,
    benign: Benign,
    paragraphs: Paragraphs,
    catalogues: Catalogues = None,
    by: By = "frame",
) -> None:
    """Report what models detect with an attack's frame, goal or language held out. Nothing is written."""
    texts, windows = _given(attacks, benign, paragraphs, catalogues)
    held = next((known for known in held_out.KINDS if known == by), None)
    if held is None:
        raise InputError(f"--by {by!r} is unknown; choose from: {', '.join(held_out.KINDS)}.")
    scores = held_out.scores(texts, windows, held)
    _report(texts, scores > held_out.threshold(texts, scores), held)


@app.command()
@reporting
def attack(attacks: Attacks, benign: Benign, paragraphs: Paragraphs, catalogues: Catalogues = None) -> None:
    """Report how attacks that address the model change answers if the model obeys everything it reads.

    Each attack is screened by a model trained without its kind, and tested with a question of the sample.
    """
    texts, windows = _given(attacks, benign, paragraphs, catalogues)
    scores, through = np.zeros(len(texts)), np.full(len(texts), -np.inf)
    known = sample()
    for part, fitted in held_out.folds(texts, windows, "frame"):
        scores[part] = fitted.scores(windows, len(texts))[part]
        judge = fitted.model(0.0)
        for number in part:
            if texts[number].kind in OVERRIDES:
                passage = attack_passage(known[number % len(known)], texts[number].text)
                named = any(sign != ORDER for sign in injections(passage.searchable()))
                through[number] = np.inf if named else injection_classifier.score(passage.searchable(), judge)
    threshold = held_out.threshold(texts, scores)
    tried = [
        (number, text.text, bool(through[number] <= threshold))
        for number, text in enumerate(texts)
        if text.kind in OVERRIDES
    ]
    outcomes = asyncio.run(outcomes_of(tried))
    say(f"{len(tried)} attacks, each beside the passages of a question, screened by a model trained without its kind:")
    for count, what in (
        (sum(unseen for _, _, unseen in tried), "reached the model"),
        (sum(outcome.changed for outcome in outcomes), "changed an answer or its citations"),
        (sum(outcome.hijacked for outcome in outcomes), "showed the attacker's answer, citation, address or secret"),
        (sum(outcome.sent for outcome in outcomes), "of these, an address, an image or the secret"),
    ):
        say(f"  {count:4d}  {what}")


@app.command()
@reporting
def measure(
    attacks: Attacks,
    benign: Annotated[Path | None, typer.Option(help="Harmless texts, in the same format.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Harmless paragraphs, with `title` and `text`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what the package's patterns and model find in texts, and the time per text."""
    texts = read(attacks, attack=True)
    texts += [] if benign is None else read(benign, attack=False)
    texts += [] if corpus is None else paragraphs(corpus, 100_000)
    injections("The model is loaded before the clock runs.")
    found, seconds = [], []
    for text in texts:
        started = time.perf_counter()
        found.append(bool(injections(text.text)))
        seconds.append(time.perf_counter() - started)
    p50, p99 = (1000 * float(part) for part in np.percentile(seconds, [50, 99]))
    rates = held_out.rates(texts, np.array(found))
    if as_json:
        print_json({"rates": rates, "milliseconds": {"p50": p50, "p99": p99}})
        return
    say(_table(rates))
    say(f"milliseconds per text: median {p50:.2f}, p99 {p99:.2f}")


def _given(attacks: Path, benign: Path, corpus: Path, catalogues: Path | None) -> tuple[list[LabelledText], Windows]:
    """All texts: those of the files, those found on this machine, and generated ones."""
    encyclopedia = paragraphs(corpus, _PARAGRAPHS + _PROSE)
    texts = usable(read(attacks, attack=True) + read(benign, attack=False)) + encyclopedia[_PROSE:]
    texts += descriptions() + docstrings(_DOCSTRINGS)
    texts += [] if catalogues is None else messages(catalogues, _MESSAGES)
    prose = [found for one in encyclopedia[:_PROSE] if len(found := sentences(one.text)) > 2]
    parts = [[part.strip() for part in found] for found in prose]
    texts += made_attacks(parts) + written_attacks(parts) + made_harmless() + written_harmless()
    windows = Windows.of([text.text for text in texts])
    say(f"{len(texts)} texts, {sum(text.attack for text in texts)} of them attacks; {windows.rows.shape[0]} windows")
    return texts, windows


def _report(texts: list[LabelledText], flagged: NDArray[np.bool_], by: held_out.By) -> None:
    say(f"each text evaluated by a model trained without its {by} or source, without the patterns:")
    say(_table(held_out.rates(texts, flagged)))
    say(f"generated attacks by {by}:")
    say(_table(held_out.by_tag(texts, flagged, by)))


def _table(rates: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"  {'caught' if row['attack'] else 'lost  '} {row['flagged']:5d} of {row['texts']:5d}"
        f" {100 * row['flagged'] / max(row['texts'], 1):6.1f} %  {kind}"
        for kind, row in rates.items()
    )


if __name__ == "__main__":
    app()
