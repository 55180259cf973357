"""`marag ask`: one question over a corpus."""

from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..wording import counted
from .shared.command import Assignments, Json, command, complain, console, plain, print_json, run, settings_of
from .shared.display import Screen, dropped_line, place, round_line, round_steps, small_model_hint, spending

if TYPE_CHECKING:
    from ..agent.engine import Answer
    from ..agent.grounded import GroundedAnswer


@command()
def ask(
    question: Annotated[list[str], typer.Argument(help="The question, best in quotes; @NAME limits it to a document.")],
    corpus: Annotated[str, typer.Option(help="The corpus to search; `sample` is built on first use.")] = "sample",
    document: Annotated[
        list[str] | None, typer.Option(help="Answer only from this document, given by title or file; repeatable.")
    ] = None,
    grounded: Annotated[bool, typer.Option("--grounded", help="Answer only from the documents, or NOT FOUND.")] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show every round: draft, signals, diagnosis, repair.")
    ] = False,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Answer a question over a corpus; check the answer and repair it if it is inadequate."""
    from ..agent.engine import require_question
    from ..llm.providers import choose_provider
    from ..retrieval.corpus.corpus import require_corpus

    settings, asked = settings_of(set_), " ".join(question)
    require_question(asked)
    require_corpus(settings.marag_data_dir, corpus)
    if not json_ and (hint := small_model_hint(choose_provider(settings))) is not None:
        complain(hint)
    screen = Screen()
    with nullcontext() if json_ else screen.working():
        found = run(
            _answered(
                asked,
                grounded=grounded,
                corpus=corpus,
                documents=document or (),
                mentions=True,
                settings=settings,
                on_step=screen.stage,
            )
        )
    from ..agent.engine import Answer

    from_documents = None if isinstance(found, Answer) else found
    result = found if isinstance(found, Answer) else found.answer
    _show(result, from_documents, trace=trace, json_=json_)


def _show(result: "Answer", from_documents: "GroundedAnswer | None", *, trace: bool, json_: bool) -> None:
    if json_:
        print_json(_as_json(result) | ({} if from_documents is None else _grounded_as_json(from_documents)))
        return
    screen = console()
    if trace:
        _show_trace(result)
    if from_documents is None:
        screen.print(f"[bold]{plain(result.short_answer)}[/]")
        if result.text != result.short_answer:
            screen.print(plain(result.text))
        passages = {found.passage.id: found.passage for found in result.evidence}
        for number, identity in enumerate(result.rounds[result.chosen].packing.packed_ids, start=1):
            screen.print(f"  [dim]{plain(f'[{number}]')} {plain(place(passages[identity]))}[/]")
        if (p_correct := result.rounds[result.chosen].p_correct) is not None:
            screen.print(f"[dim]estimated probability of being correct: {p_correct:.0%}[/]")
    else:
        screen.print(plain(from_documents.text))
        from ..chat.transcript import source_lines

        for citation in from_documents.citations:
            screen.print(f"  [dim]{plain(': '.join(source_lines(citation)))}[/]")
        for note in from_documents.left_out:
            screen.print(f"[yellow]{plain(note)}[/]")
        if (sure := from_documents.confidence) is not None:
            screen.print(f"[dim]confidence {sure.level} ({sure.score:.2f})[/]")
    rounds, totals = counted(len(result.rounds), "round"), (from_documents or result).totals
    screen.print(f"[dim]{rounds}, stopped: {result.stop_reason}; {spending(totals)}[/]")


async def _answered(question: str, *, grounded: bool, **how: Any) -> "Answer | GroundedAnswer":
    from ..asking import answer, grounded_answer

    return await (grounded_answer if grounded else answer)(question, **how)


def _show_trace(result: "Answer") -> None:
    """The retrieved passages with their scores and links, the dropped ones with the reasons, and every round."""
    screen = console()
    screen.print("[bold]Evidence[/]")
    titles = {found.passage.id: found.passage.title or found.passage.id for found in result.evidence}
    for found in result.evidence:
        scores = {"cosine": found.dense, "BM25": found.lexical}
        details = [f"{name} {value:.2f}" for name, value in scores.items() if value is not None]
        if found.via is not None:
            details.append(f"mentioned in {titles.get(found.via, found.via)}")
        screen.print(f"  {plain(place(found.passage))} [dim]{plain('; '.join(details))}[/]")
    for dropped in result.dropped:
        screen.print(f"  {dropped_line(dropped)}")
    for round_ in result.rounds:
        screen.print(round_line(round_, chosen=round_.index == result.chosen))
        for step in round_steps(round_):
            screen.print(step)


def _as_json(result: "Answer") -> dict[str, Any]:
    return {
        "question": result.question,
        "answer": result.text,
        "short_answer": result.short_answer,
        "stop_reason": result.stop_reason,
        "chosen": result.chosen,
        "fired": result.fired,
        "rounds": [asdict(round_) for round_ in result.rounds],
        "evidence": [asdict(found) for found in result.evidence],
        "dropped": [asdict(dropped) for dropped in result.dropped],
        "totals": asdict(result.totals),
    }


def _grounded_as_json(result: "GroundedAnswer") -> dict[str, Any]:
    return {
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "citations": [asdict(citation) for citation in result.citations],
        "claims": [{**asdict(claim), **asdict(support)} for claim, support in result.claims],
        "removed_citations": result.removed,
        "leaks": result.leaks,
        "confidence": None if result.confidence is None else asdict(result.confidence),
        "totals": asdict(result.totals),
    }
