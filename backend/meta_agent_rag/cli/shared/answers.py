"""A recorded answer step by step: evidence, drafts, derivation, vote, diagnosis, repairs and result."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...wording import counted, passage_name
from .command import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ...agent.state import Round
    from ...demo.runs.files import Row
    from ...retrieval.passage import Found


def steps(
    row: "Row", one_pass: "Row | None", passages: "Mapping[str, Found] | None" = None
) -> Iterator["RenderableType"]:
    """The stages of an answer in order, the last one next to the answer of one pass, if known.

    A quote that occurs in none of the `passages` is marked if these include all of an answer's evidence.
    """
    from ...demo.runs.files import rounds_of

    rounds = rounds_of(row)
    names = ", ".join(plain(passage_name(id_)) for id_ in rounds[0].evidence_ids)
    yield f"[bold]Evidence.[/] {len(rounds[0].evidence_ids)} initial passages: [dim]{names}[/]\n"
    for before, round_ in zip((None, *rounds), rounds, strict=False):
        yield from _round(round_, before, passages or {})
    yield _outcome(row, one_pass, rounds)


def _round(round_: "Round", before: "Round | None", passages: "Mapping[str, Found]") -> Iterator["RenderableType"]:
    """The stages of a round: its plan, its draft, the facts and the vote if they are new, the diagnosis."""
    from ...demo.words import deficit, spoken
    from .derivations import derivation_lines, vote_lines

    if round_.plan is not None:
        yield f"[bold]Repair ({spoken(round_.plan.deficit)}).[/] {_instruction(round_)}\n"
    quotes = "".join(f"\n    {_quoted(quote, round_, passages)}" for quote in round_.draft.quotes)
    adopted = round_.plan is not None and round_.plan.repair == "conclude"
    name = "The first draft" if round_.index == 0 else "The adopted answer" if adopted else "The new draft"
    verb, said = "is" if adopted else "answers", plain(round_.draft.short_answer or "nothing")
    yield f"[bold]{name}[/] {verb} [cyan]{said}[/].{quotes}\n"
    derivation = round_.derivation
    if derivation is not None and (before is None or derivation != before.derivation):
        if derivation.plan is None:
            yield f"[bold]Derivation.[/] None; {plain(derivation.why_none)}.\n"
        else:
            facts = "\n".join(derivation_lines(derivation))
            yield f"[bold]Derivation.[/] The question is split into facts, each looked up separately:\n{facts}\n"
    if round_.vote is not None and (before is None or round_.vote != before.vote):
        ballots = "\n".join(vote_lines(round_.vote, derivation))
        yield f"[bold]Vote.[/] Every route casts a ballot, and similar answers support each other:\n{ballots}\n"
    if round_.diagnosis is not None:
        named = deficit(round_.diagnosis.deficit)
        yield f"[bold]Diagnosis: [yellow]{plain(named)}[/].[/] {_sentence(round_.diagnosis.rationale)}\n"


def _quoted(quote: str, round_: "Round", passages: "Mapping[str, Found]") -> str:
    from ...grounding.quotes import is_verbatim

    texts = [passages[id_].passage.searchable() for id_ in round_.evidence_ids if id_ in passages]
    lost = len(texts) == len(round_.evidence_ids) and not is_verbatim(quote, texts)
    return f"quotes “{plain(quote)}”{' [red](not in the passages)[/]' if lost else ''}"


def _instruction(round_: "Round") -> str:
    from ...demo.words import repair

    plan = round_.plan
    assert plan is not None
    searched = "".join(f"\n    searched for “{plain(query)}”" for query in plan.queries)
    return f"{plain(repair(plan))}{searched}"


def _outcome(row: "Row", one_pass: "Row | None", rounds: "tuple[Round, ...]") -> "RenderableType":
    from ...demo.runs.tour import LOOP, ONE_PASS, RIGHT
    from ...demo.words import stop_reason

    p_correct = rounds[row["chosen"]].p_correct
    verdict = "right" if row["f1"] >= RIGHT else "wrong"
    verdict += f" (F1 {100 * row['f1']:.0f}, not exact)" if RIGHT <= row["f1"] < 1 else ""
    lines = [
        f"[bold]Result: {verdict}.[/] {plain(stop_reason(row['stop_reason'], p_correct))} "
        f"The gold answer is [bold]{plain(row['gold'])}[/]."
    ]
    method = str(row["method"])
    shown = {} if one_pass is None else {"one pass": _scored(one_pass)}
    if method == LOOP:
        shown["first draft"] = (rounds[0].draft.short_answer, row["rounds"][0]["f1"], "")
    shown[{ONE_PASS: "one pass", LOOP: "the loop"}.get(method, method)] = _scored(row)
    for name, (answer, f1, spent) in shown.items():
        colour = "green" if f1 >= RIGHT else "red"
        lines.append(
            f"    {plain(name):<13} [{colour}]{plain(answer or 'nothing')}[/] [dim](F1 {100 * f1:.0f}{spent})[/]"
        )
    if p_correct is not None:
        lines.append(f"    Estimated probability that the loop's answer is correct: {p_correct:.0%}.")
    return "\n".join(lines) + "\n"


def _scored(row: "Row") -> tuple[str, float, str]:
    """A recorded answer, its F1, and what it cost."""
    spent = f", {counted(row['llm_calls'], 'call')}, {row['tokens']['completion']} tokens written"
    return row["prediction"], row["f1"], spent


def _sentence(text: str) -> str:
    words = plain(text.strip())
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
