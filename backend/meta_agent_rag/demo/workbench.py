"""The resources of the demo's visitors: shared ones, opened once, on first use, and a visitor's own model."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from ..agent.engine import Engine, open_engine
from ..chat.phrases import check_files
from ..datasets import Dataset, Paragraph, Question, discover, load_file, load_questions
from ..errors import MetaRagError
from ..llm.budget import Budget
from ..llm.client import utc_now
from ..llm.opening import Given
from ..llm.pricing import unpriced_models
from ..llm.providers import EMBEDDED, choose_provider, providers
from ..llm.stages import CHAT, runs_here
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import Retriever
from ..retrieval.open_retriever import open_encoder, open_retriever
from ..settings import Settings
from ..shipped import shipped
from .own_model import OwnModel


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """The questions of one source, in their original order, and what to know about them, such as their licence.

    `deficits_dir` holds the deficit that they were made for, beside those of the loop.
    """

    name: str
    questions: tuple[Question, ...]
    licence: str = ""
    deficits_dir: Path | None = None

    def get(self, id_: str) -> Question | None:
        """The question with an id, or `None`."""
        return next((question for question in self.questions if question.id == id_), None)


_LICENCES = {
    "2WikiMultiHopQA": "From 2WikiMultiHopQA (Ho et al., 2020; Apache-2.0); paragraphs from Wikipedia (CC BY-SA 3.0).",
    "HotpotQA": "From HotpotQA (Yang et al., 2018; CC BY-SA 4.0); paragraphs from Wikipedia (CC BY-SA 3.0).",
}
"""The packaged real questions, by the name of their data set."""


def packaged_questions() -> tuple[QuestionSet, ...]:
    """A few questions of real data sets, those of the sample, and those of the example deficit."""
    real = (
        QuestionSet(name=name, questions=load_file(shipped(f"{name.lower()}.json")).questions, licence=licence)
        for name, licence in _LICENCES.items()
    )
    return (*real, QuestionSet(name=SAMPLE, questions=load_questions(SAMPLE).questions), conflicting_sources())


def conflicting_sources() -> QuestionSet:
    """Questions about which two passages disagree, and the deficit that notices it."""
    folder = shipped("deficits")
    rows = map(json.loads, (folder / "conflicts.jsonl").read_text(encoding="utf-8").splitlines())
    questions = (
        Question(
            id=row["id"],
            text=row["question"],
            answer=row["answer"],
            paragraphs=tuple(
                Paragraph(title=title, sentences=(text,), is_supporting=True) for title, text in row["passages"]
            ),
        )
        for row in rows
    )
    about = "Two invented passages disagree. A fifth deficit, the example of docs/adding-a-deficit.md, notices it."
    return QuestionSet(name="conflicting sources", questions=tuple(questions), licence=about, deficits_dir=folder)


def read_questions(path: Path, known: Mapping[str, Dataset] | None = None) -> QuestionSet:
    """The questions of an official file of any known data set. Raises `DataFileError`."""
    return QuestionSet(name=path.stem, questions=load_file(path, registry=known).questions)


_FOR_THE_PACKAGED_MODEL = "sample-020"
Opened = TypeVar("Opened")


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Settings, one corpus, the selectable questions, the folder of benchmark runs, and resources opened on demand.

    `model` and `monitor_encoder` replace what the settings describe, as in `open_engine`; `uploads` is the folder of
    the visitors' files.
    """

    settings: Settings
    corpus: str = SAMPLE
    question_sets: tuple[QuestionSet, ...] = field(default=(), repr=False)
    runs_dir: Path = Path("RESULTS")
    uploads: Path = Path()
    model: Given = field(default=None, repr=False)
    monitor_encoder: AsyncEncoder | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)
    _open: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _opening: dict[Hashable, asyncio.Lock] = field(default_factory=dict, repr=False)
    _budgets: dict[str, Budget] = field(default_factory=dict, repr=False)
    _own: dict[str, tuple[Engine, AsyncExitStack]] = field(default_factory=dict, repr=False)

    @property
    def is_small(self) -> bool:
        """Whether the packaged model answers, which is slow and knows little; false if there is no model."""
        try:
            choice = choose_provider(self.settings)
        except MetaRagError:  # the first run reports it
            return False
        return choice.provider.name == EMBEDDED and choice.models["flash"] == providers()[EMBEDDED].flash

    def first_question(self) -> tuple[QuestionSet, Question]:
        """The question shown first, with its set; for the packaged model, one that it answers after repairs."""
        packaged = self.found(_FOR_THE_PACKAGED_MODEL) if self.is_small else None
        return packaged or (self.question_sets[0], self.question_sets[0].questions[0])

    def found(self, id_: str) -> tuple[QuestionSet, Question] | None:
        """The question with an id, and its set."""
        return next(((one, question) for one in self.question_sets if (question := one.get(id_))), None)

    async def engine(self, visitor: str) -> Engine:
        """An engine over the visitor's own model, or one that spends from their budget; see `visitor_of`.

        Raises a `MetaRagError` that says why the model cannot be opened.
        """
        if visitor in self._own:
            return self._own[visitor][0]
        engine: Engine = await self.once(
            "engine", lambda: open_engine(self.settings, model=self.model, monitor_encoder=self.monitor_encoder)
        )
        budget = engine.model.budget
        if self.is_capped():
            limit = Decimal(str(self.settings.demo_visitor_usd))
            budget = self._budgets.setdefault(visitor, VisitorBudget(limit_usd=limit, whole=budget))
        return replace(engine, model=replace(engine.model, budget=budget))

    async def retriever(self) -> Retriever:
        """The retriever of the corpus; `sample` is built on first use. Raises `CorpusError` if it does not exist."""
        encoder = await self.encoder()
        opened: Retriever = await self.once(
            "corpus", lambda: open_retriever(self.settings, self.corpus, encoder=encoder)
        )
        return opened

    async def encoder(self) -> AsyncEncoder:
        """The encoder of passages."""
        opened: AsyncEncoder = await self.once("encoder", self._encoder)
        return opened

    def is_capped(self) -> bool:
        """Whether a visitor's cap can be enforced: calls have a known price above zero."""
        return not (runs_here(self.settings, CHAT) or unpriced_models(self.settings, at=utc_now()))

    async def bring(self, visitor: str, given: OwnModel) -> None:
        """Answer a visitor's questions with a model of their own, which was checked, from now on."""
        settings = given.settings(self.settings)
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(given.opened(self.settings.demo_own_models))
            opening = open_engine(
                settings, model=model, monitor_encoder=self.monitor_encoder, ledger_path=self.uploads / "ledger.jsonl"
            )
            engine = await stack.enter_async_context(opening)
            await self.forget(visitor)
            self._own[visitor] = engine, stack.pop_all()

    async def forget(self, visitor: str) -> None:
        """Discard the own model of a visitor; what they have spent of the demo's budget still counts."""
        if visitor in self._own:
            await self._own.pop(visitor)[1].aclose()

    async def left(self, visitor: str) -> None:
        """Discard the budget and the own model of a visitor."""
        self._budgets.pop(visitor, None)
        await self.forget(visitor)

    @asynccontextmanager
    async def _encoder(self) -> AsyncIterator[AsyncEncoder]:
        yield await asyncio.to_thread(open_encoder, self.settings)

    async def once(self, key: Hashable, opening: Callable[[], AbstractAsyncContextManager[Opened]]) -> Opened:
        """The result of `opening`, opened by the first request for this key, and closed with the workbench."""
        async with self._opening.setdefault(key, asyncio.Lock()):
            if key not in self._open:
                self._open[key] = await self._stack.enter_async_context(opening())
        opened: Opened = self._open[key]
        return opened

    async def aclose(self) -> None:
        """Close everything that was opened."""
        for visitor in list(self._own):
            await self.forget(visitor)
        await self._stack.aclose()


@asynccontextmanager
async def open_workbench(
    settings: Settings, *, corpus: str = SAMPLE, data_files: Sequence[Path] = (), **parts: Any
) -> AsyncIterator[Workbench]:
    """A workbench, closed at the end; `parts` are additional fields.

    Raises `DataFileError` for a file that contains no questions, `PromptError` for a fault in the user's own prompts
    or words.
    """
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    known = discover(settings.datasets_dir)
    sets = (*packaged_questions(), *(read_questions(path, known) for path in data_files))
    with TemporaryDirectory(prefix="marag-demo-") as uploads:
        workbench = Workbench(settings=settings, corpus=corpus, question_sets=sets, uploads=Path(uploads), **parts)
        try:
            yield workbench
        finally:
            await workbench.aclose()


@dataclass(kw_only=True)
class VisitorBudget(Budget):
    """A visitor's own limit within the limit of the `whole`; each call is reserved in both."""

    whole: Budget

    async def acquire(self, highest_usd: Decimal | None, *, model: str, deadline: float | None = None) -> Decimal:
        """See `Budget`. Raises `CostLimitError` if either limit could be exceeded, and `DeadlineError`."""
        own = await super().acquire(highest_usd, model=model, deadline=deadline)
        try:
            await self.whole.acquire(highest_usd, model=model, deadline=deadline)
        except BaseException:
            super().settle(own, Decimal(0))
            raise
        return highest_usd if highest_usd is not None else own

    def settle(self, reserved_usd: Decimal, paid_usd: Decimal | None, *, recorded: bool = True) -> None:
        """See `Budget`."""
        super().settle(reserved_usd, paid_usd, recorded=recorded)
        self.whole.settle(reserved_usd, paid_usd, recorded=recorded)
