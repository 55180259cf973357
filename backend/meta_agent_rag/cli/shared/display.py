"""What commands show a person: a screen with a spinner, an answer's rounds, derivation and vote, places and cost."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...wording import FREE, counted, passage_name, printable
from .command import complain, console, plain

if TYPE_CHECKING:
    from ...agent.derivation import Derivation
    from ...agent.engine import Step
    from ...agent.routes import Vote
    from ...agent.state import Round
    from ...demo.run_files import Row
    from ...llm.ledger import Totals
    from ...llm.providers import Choice
    from ...retrieval.passage import Found, Passage
    from ...retrieval.screening import Dropped

_BAR = 20


@dataclass(kw_only=True)
class Screen:
    """Standard output; all printed text is stripped of control characters, except those of this class."""

    _status: Any = field(default=None, repr=False)

    @cached_property
    def console(self) -> Any:
        """Rich's console: with styles if a terminal supports them and NO_COLOR is not set."""
        drawn = console(force_terminal=sys.stdout.isatty())
        wants_none = drawn.no_color or not drawn.is_terminal
        return console(force_terminal=drawn.is_terminal, color_system=None) if wants_none else drawn

    @property
    def animated(self) -> bool:
        """Whether there is a terminal with cursor control."""
        return bool(self.console.is_terminal and not self.console.is_dumb_terminal)

    @property
    def coloured(self) -> bool:
        """Whether styles are shown."""
        return self.console.color_system is not None

    def markup(self, text: str) -> None:
        """Print a line of Rich markup; parts of unknown origin must have passed through `plain`."""
        self.console.print(text)

    def line(self, text: object = "") -> None:
        """Print a line verbatim."""
        self.console.print(plain(text))

    def note(self, text: object) -> None:
        """Print a less prominent line."""
        self.console.print(f"[dim]{plain(text)}[/]")

    def fault(self, text: object) -> None:
        """Print an error in one sentence; on stderr if the output is not a terminal."""
        if self.console.is_terminal:
            self.console.print(f"[red]{plain(text)}[/]")
        else:
            complain(printable(text))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Show a spinner, on a terminal; `stage` shows the current step beside it."""
        if not self.animated:
            yield
            return
        with self.console.status("Reading the question") as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def stage(self, step: "Step") -> None:
        """Show which node of the loop starts."""
        if self._status is not None:
            self._status.update(plain(step.words))


def round_line(round_: "Round", *, chosen: bool) -> str:
    """One round in one line, as markup."""
    repair = [] if round_.plan is None else [f"repair of [yellow]{plain(round_.plan.deficit)}[/]"]
    judged = [] if round_.signals is None else [f"monitor {_judged(round_)}"]
    found = [] if round_.diagnosis is None else [f"{round_.diagnosis.source}: {plain(round_.diagnosis.deficit)}"]
    draft = f"draft: {plain(' '.join(round_.draft.short_answer.split()))}"
    mark = " [green](chosen)[/]" if chosen else ""
    return f"[bold]Round {round_.index}[/]{mark}: {'; '.join([*repair, draft, *judged, *found])}"


def dropped_line(dropped: "Dropped") -> str:
    """A passage that was left out, and why, as markup."""
    return f"[yellow]dropped[/] {plain(dropped.passage_id)}: {plain(dropped.reason)}"


def place(passage: "Passage") -> str:
    """The place of a passage: title, section, pages."""
    pages = None
    if passage.start_page is not None:
        many = passage.end_page not in {None, passage.start_page}
        pages = f"pp. {passage.start_page}-{passage.end_page}" if many else f"p. {passage.start_page}"
    section = passage.section if passage.section != passage.title else None
    return ", ".join(part for part in (passage.title or passage.id, section, pages) if part)


def spending(totals: "Totals") -> str:
    """Calls, tokens and dollars; unknown prices are reported as such, and a local model as free."""
    unpriced = FREE if totals.on_this_machine else "cost unknown"
    cost = unpriced if totals.cost_usd is None else f"{totals.cost_usd:.6f} USD"
    failed = f", and at most {totals.failed_usd:.6f} USD for failed calls" if totals.failed_usd else ""
    tokens = f"{totals.prompt_tokens} + {totals.completion_tokens} tokens"
    if totals.unmetered_calls:
        known = f"{tokens} and an unknown number in" if totals.prompt_tokens else "an unknown number of tokens in"
        tokens = f"{known} {counted(totals.unmetered_calls, 'call')}"
    return f"{counted(totals.calls, 'call')}, {tokens}, {cost}{failed}"


def small_model_hint(choice: "Choice") -> str | None:
    """What a user is told before asking the packaged model; `None` if another one answers."""
    from ...llm.local import local_models
    from ...llm.providers import EMBEDDED, providers

    if choice.provider.name != EMBEDDED or choice.models["flash"] != providers()[EMBEDDED].flash:
        return None
    first = next(iter(local_models().values()))
    better = f"`marag models get {first.name}` ({first.bytes / 1e9:.1f} GB) or a provider's key (docs/models.md)"
    return f"The packaged {choice.models['flash']} answers; it is very small. For useful answers, use {better}."


def recorded_steps(row: "Row", one_pass: "Row | None", passages: "Mapping[str, Found] | None" = None) -> Iterator[str]:
    """The stages of a recorded answer in order, as markup, the last one next to the answer of one pass, if known."""
    from ...demo.run_files import rounds_of

    rounds = rounds_of(row)
    names = ", ".join(plain(passage_name(id_)) for id_ in rounds[0].evidence_ids)
    yield f"[bold]Evidence.[/] {len(rounds[0].evidence_ids)} initial passages: [dim]{names}[/]\n"
    for before, round_ in zip((None, *rounds), rounds, strict=False):
        yield from round_steps(round_, before, passages)
    yield _outcome(row, one_pass, rounds)


def round_steps(
    round_: "Round", before: "Round | None" = None, passages: "Mapping[str, Found] | None" = None
) -> Iterator[str]:
    """The stages of a round as markup: its plan, its draft, facts and vote if they are new, monitor and diagnosis.

    A quote that occurs in none of the `passages` is marked if these include all of the round's evidence.
    """
    from ...demo.vocabulary import deficit, repair, spoken

    if (plan := round_.plan) is not None:
        searched = "".join(f"\n    searched for “{plain(query)}”" for query in plan.queries)
        yield f"[bold]Repair ({spoken(plan.deficit)}).[/] {plain(repair(plan))}{searched}\n"
    quotes = "".join(f"\n    {_quoted(quote, round_, passages or {})}" for quote in round_.draft.quotes)
    adopted = plan is not None and plan.repair == "conclude"
    name = "The first draft" if round_.index == 0 else "The adopted answer" if adopted else "The new draft"
    said = plain(round_.draft.short_answer or "nothing")
    yield f"[bold]{name}[/] {'is' if adopted else 'answers'} [cyan]{said}[/].{quotes}\n"
    derivation = round_.derivation
    if derivation is not None and (before is None or derivation != before.derivation):
        if derivation.plan is None:
            yield f"[bold]Derivation.[/] None; {plain(derivation.why_none)}.\n"
        else:
            facts = "\n".join(_derivation_lines(derivation))
            yield f"[bold]Derivation.[/] The question is split into facts, each looked up separately:\n{facts}\n"
    if round_.searches:
        searched = "".join(f"\n    {plain(query)}" for query in round_.searches)
        found = counted(len(round_.searched_ids), "passage")
        yield f"[bold]Searched between calls[/], which added {found}:{searched}\n"
    if round_.vote is not None and (before is None or round_.vote != before.vote):
        ballots = "\n".join(_vote_lines(round_.vote, derivation))
        yield f"[bold]Vote.[/] Every route casts a ballot, and similar answers support each other:\n{ballots}\n"
    if round_.signals is not None:
        yield f"[bold]Monitor.[/] {_judged(round_)} ({_signals(round_)})\n"
    if (diagnosis := round_.diagnosis) is not None:
        why = plain(diagnosis.rationale.strip())
        end = "" if why.endswith(".") else "."
        yield f"[bold]Diagnosis: [yellow]{plain(deficit(diagnosis.deficit))}[/].[/] {why[:1].upper()}{why[1:]}{end}\n"


def _quoted(quote: str, round_: "Round", passages: "Mapping[str, Found]") -> str:
    from ...grounding.quotes import is_verbatim

    texts = [passages[id_].passage.searchable() for id_ in round_.evidence_ids if id_ in passages]
    lost = passages and len(texts) == len(round_.evidence_ids) and not is_verbatim(quote, texts)
    return f"quotes “{plain(quote)}”{' [red](not in the passages)[/]' if lost else ''}"


def _derivation_lines(derivation: "Derivation") -> Iterator[str]:
    """A line for each fact with its value and passage, an open one in red, then one for the conclusion."""
    for fact in derivation.facts:
        value = plain(fact.value or "?")
        source = "from memory" if fact.from_memory else plain(passage_name(fact.passage_id or ""))
        source += ", found by a search" if fact.searched else ""
        found = f"[green]{value}[/] ({source})" if fact.open is None else f"[red]{value}[/] (open: {plain(fact.open)})"
        yield f"    {plain(fact.asked)} {found}"
    if derivation.answer:
        ends = derivation.because.endswith(derivation.answer)
        yield f"    [bold]{plain(derivation.because)}[/]{'' if ends else f' -> {plain(derivation.answer)}'}"


def _vote_lines(vote: "Vote", derivation: "Derivation | None") -> Iterator[str]:
    """A line for the elected answer, then a bar for each route."""
    from ...demo.vocabulary import ballot_note, spoken

    yield f"  vote: {plain(vote.elected or '(nothing)')} wins with a support of {vote.share:.0%}"
    for ballot, support in zip(vote.ballots, vote.support, strict=True):
        bar = "█" * round(_BAR * support)
        note = ballot_note(ballot, support, derivation)
        said = f"{plain(ballot.short_answer or '(nothing)')}{f' [dim]({note})[/]' if note else ''}"
        yield f"    {spoken(ballot.route):<16} {bar:<{_BAR}} {support:>4.0%} {said}"


def _judged(round_: "Round") -> str:
    from ...grounding.confidence import is_doubtful

    if not round_.satisfied:
        return "not satisfied"
    return "accepts it because no better answer was found" if is_doubtful(round_.p_correct) else "satisfied"


def _signals(round_: "Round") -> str:
    signals, p_correct = round_.signals, round_.p_correct
    assert signals is not None
    known = {
        "cosine": None if signals.similarity is None else f"{signals.similarity:.2f}",
        "same short answer": None if signals.agreement is None else "yes" if signals.agreement else "no",
        "quotes verbatim": None if signals.verbatim is None else f"{signals.verbatim:.0%}",
        "probability of being correct": None if p_correct is None else f"{p_correct:.0%}",
    }
    return ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)


def _outcome(row: "Row", one_pass: "Row | None", rounds: "tuple[Round, ...]") -> str:
    from ...demo.run_files import RIGHT
    from ...demo.vocabulary import stop_reason

    p_correct = rounds[row["chosen"]].p_correct
    verdict = "right" if row["f1"] >= RIGHT else "wrong"
    verdict += f" (F1 {100 * row['f1']:.0f}, not exact)" if RIGHT <= row["f1"] < 1 else ""
    lines = [
        f"[bold]Result: {verdict}.[/] {plain(stop_reason(row['stop_reason'], p_correct))} "
        f"The gold answer is [bold]{plain(row['gold'])}[/]."
    ]

    def line(name: str, answer: str, f1: float, spent: str = "") -> None:
        colour = "green" if f1 >= RIGHT else "red"
        lines.append(
            f"    {plain(name):<13} [{colour}]{plain(answer or 'nothing')}[/] [dim](F1 {100 * f1:.0f}{spent})[/]"
        )

    line("first draft", rounds[0].draft.short_answer, row["rounds"][0]["f1"])
    for name, one in (("one pass", one_pass), ("the loop", row)):
        if one is not None:
            spent = f", {counted(one['llm_calls'], 'call')}, {one['tokens']['completion']} tokens written"
            line(name, one["prediction"], one["f1"], spent)
    if p_correct is not None:
        lines.append(f"    Estimated probability that the loop's answer is correct: {p_correct:.0%}.")
    return "\n".join(lines) + "\n"
