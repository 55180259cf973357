"""The resources shared by all visitors of the demo: opened once, on first use, and closed at the end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from ..agent.engine import Engine, open_engine
from ..chat.phrases import check_files
from ..datasets import Dataset, HubAccess, Question, discover, load_file, load_questions
from ..errors import MetaRagError, SettingsError, UnknownNameError
from ..llm.budget import Budget
from ..llm.client import LanguageModel, utc_now
from ..llm.opening import Given, described, open_language_model
from ..llm.pricing import unpriced_models
from ..llm.providers import EMBEDDED, Choice, choose_provider, providers
from ..llm.stages import CHAT, runs_here
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.corpus import list_corpora
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import Retriever
from ..retrieval.open_retriever import open_encoder, open_retriever
from ..settings import ModelRoles, Settings
from ..shipped import shipped

MOST_FETCHED = 1000
"""The number of questions kept from a data set on the hub."""


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """The questions of one source, in their original order, and under which licence they are packaged."""

    name: str
    questions: tuple[Question, ...]
    licence: str = ""

    def get(self, id_: str) -> Question | None:
        """The question with an id, or `None`."""
        return next((question for question in self.questions if question.id == id_), None)


_LICENCES = {
    "2WikiMultiHopQA": "From 2WikiMultiHopQA (Ho et al., 2020; Apache-2.0); paragraphs from Wikipedia (CC BY-SA 3.0).",
    "HotpotQA": "From HotpotQA (Yang et al., 2018; CC BY-SA 4.0); paragraphs from Wikipedia (CC BY-SA 3.0).",
}
"""The packaged real questions, by the name of their data set."""


def sample_questions() -> QuestionSet:
    """The invented questions of the packaged sample."""
    return QuestionSet(name=SAMPLE, questions=load_questions(SAMPLE).questions)


def packaged_questions() -> tuple[QuestionSet, ...]:
    """A few questions of real data sets, and those of the sample."""
    real = (
        QuestionSet(name=name, questions=load_file(shipped(f"{name.lower()}.json")).questions, licence=licence)
        for name, licence in _LICENCES.items()
    )
    return (*real, sample_questions())


def read_questions(path: Path, known: Mapping[str, Dataset] | None = None) -> QuestionSet:
    """The questions of an official file of any known data set. Raises `DataFileError`."""
    return QuestionSet(name=path.stem, questions=load_file(path, registry=known).questions)


_FOR_THE_PACKAGED_MODEL = "sample-020"
Opened = TypeVar("Opened")


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Settings, the selectable questions, the folder of benchmark runs, and resources opened on demand.

    `corpus` is used if a visitor names none. `datasets` are those that the operator lets visitors
    `fetch` from the hub, which is not contacted before one of them is selected. `model` and `monitor_encoder`
    replace what the settings describe, as in `open_engine`; `retrievers` are corpora that are already open, `uploads`
    is the folder of the visitors' files.
    """

    settings: Settings
    corpus: str = SAMPLE
    question_sets: tuple[QuestionSet, ...] = field(default=(), repr=False)
    datasets: tuple[str, ...] = ()
    fetch: Callable[[str], QuestionSet] | None = None
    runs_dir: Path = Path("RESULTS")
    uploads: Path = Path()
    model: Given = field(default=None, repr=False)
    monitor_encoder: AsyncEncoder | None = None
    retrievers: dict[str, Retriever] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)
    _open: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _opening: dict[Hashable, asyncio.Lock] = field(default_factory=dict, repr=False)
    _budgets: dict[str, Budget] = field(default_factory=dict, repr=False)

    @property
    def choice(self) -> Choice:
        """The provider chosen by the settings. Raises a `SettingsError` that says what is missing."""
        return choose_provider(self.settings)

    def provider_names(self) -> list[str]:
        """The configured providers (with a key, an address or a model), the chosen one first."""
        configured = [name for name in ("", *providers()) if self._is_configured(name)]
        chosen = [self.choice.provider.name] if "" in configured else []
        return list(dict.fromkeys([*chosen, *filter(None, configured)]))

    def _is_configured(self, provider: str) -> bool:
        try:
            described(self._settings_for(provider) if provider else self.settings)  # looks for the embedded model too
        except (SettingsError, UnknownNameError):
            return False
        return True

    def corpora(self) -> list[str]:
        """The searchable corpora; the demo's own first."""
        known = [*self.retrievers] or [
            SAMPLE,
            *(manifest.name for manifest in list_corpora(self.settings.marag_data_dir)),
        ]
        return list(dict.fromkeys([self.corpus, *known]))

    def set_names(self) -> list[str]:
        """The selectable sets of questions; the first is available immediately."""
        return [*(one.name for one in self.question_sets), *self.datasets]

    def known_sets(self) -> tuple[QuestionSet, ...]:
        """The available sets, including the fetched ones."""
        fetched = (self._open.get(("questions", name)) for name in self.datasets)
        return (*self.question_sets, *filter(None, fetched))

    async def question_set(self, name: str) -> QuestionSet:
        """A set of questions, fetched on first use. Raises `DataFileError` if the hub does not provide it."""
        if name not in self.set_names():
            raise UnknownNameError("data set", name, self.set_names())
        here = next((one for one in self.question_sets if one.name == name), None)
        if here is not None:
            return here
        fetched: QuestionSet = await self.once(("questions", name), partial(self._fetched, name))
        return fetched

    def first_question(self) -> tuple[QuestionSet, Question]:
        """The question shown first, with its set; for the packaged model, one that it answers after repairs."""
        first, embedded = self.question_sets[0], providers()[EMBEDDED]
        try:
            small = self.choice.provider.name == EMBEDDED and self.choice.models["flash"] == embedded.flash
        except MetaRagError:  # no model: the first run reports it
            small = False
        found = ((one, one.get(_FOR_THE_PACKAGED_MODEL)) for one in self.question_sets if small)
        return next(((one, question) for one, question in found if question), (first, first.questions[0]))

    def question(self, id_: str) -> Question | None:
        """The question with an id, from any available set."""
        return next((found for one in self.known_sets() if (found := one.get(id_))), None)

    async def engine(self, visitor: str, *, provider: str | None = None) -> Engine:
        """An engine that spends from a visitor's budget; `visitor` comes from `visitor_of`.

        Raises a `MetaRagError` that says why the model cannot be opened.
        """
        name = provider or self.choice.provider.name
        model: LanguageModel = await self.once(
            ("model", name), lambda: open_language_model(self._settings_for(name), model=self.model)
        )
        engine: Engine = await self.once(
            ("engine", name),
            lambda: open_engine(model.settings, model=model, monitor_encoder=self.monitor_encoder),
        )
        return replace(engine, model=replace(model, budget=self._budget(visitor, model)))

    async def retriever(self, corpus: str | None = None) -> Retriever:
        """The retriever of a corpus; `sample` is built on first use. Raises `CorpusError` if it does not exist."""
        name = corpus or self.corpus
        if name in self.retrievers:
            return self.retrievers[name]
        encoder = await self.encoder()
        opened: Retriever = await self.once(
            ("corpus", name), lambda: open_retriever(self.settings, name, encoder=encoder)
        )
        return opened

    async def encoder(self) -> AsyncEncoder:
        """The encoder of passages."""
        opened: AsyncEncoder = await self.once("encoder", self._encoder)
        return opened

    def is_capped(self, provider: str | None = None) -> bool:
        """Can a visitor's cap be enforced: do calls to this provider's model have a known price above zero?"""
        settings = self._settings_for(provider or self.choice.provider.name)
        if runs_here(settings, CHAT):
            return False
        return not unpriced_models(settings, at=utc_now())

    def forget(self, visitor: str) -> None:
        """Discard the state of a visitor who has left."""
        self._budgets.pop(visitor, None)

    def _budget(self, visitor: str, model: LanguageModel) -> Budget:
        if not self.is_capped(model.choice.provider.name):
            return model.budget
        limit = Decimal(str(self.settings.demo_visitor_usd))
        # one for all providers: switching the model gives no additional allowance
        return self._budgets.setdefault(visitor, VisitorBudget(limit_usd=limit, whole=self._whole))

    @cached_property
    def _whole(self) -> Budget:
        return Budget.under(self.settings.cost_limit_usd)

    def _settings_for(self, provider: str) -> Settings:
        """The settings for another provider, without the models and the address meant for the chosen one."""
        if provider == self.choice.provider.name:
            return self.settings
        other = {
            "llm_provider": provider,
            "llm_base_url": None,
            "flash_model": None,
            "pro_model": None,
            "price_as": None,
            "model_roles": ModelRoles(),
        }
        return self.settings.model_copy(update=other)

    @asynccontextmanager
    async def _encoder(self) -> AsyncIterator[AsyncEncoder]:
        yield await asyncio.to_thread(open_encoder, self.settings)

    @asynccontextmanager
    async def _fetched(self, name: str) -> AsyncIterator[QuestionSet]:
        yield await asyncio.to_thread(self.fetch or self._from_hub, name)

    def _from_hub(self, name: str) -> QuestionSet:
        known, access = discover(self.settings.datasets_dir), HubAccess(token=self.settings.hf_token)
        loaded = load_questions(name, registry=known, most=MOST_FETCHED, access=access)
        return QuestionSet(name=name, questions=loaded.questions)

    async def once(self, key: Hashable, opening: Callable[[], AbstractAsyncContextManager[Opened]]) -> Opened:
        """The result of `opening`, opened by the first request for this key, and closed with the workbench."""
        async with self._opening.setdefault(key, asyncio.Lock()):
            if key not in self._open:
                self._open[key] = await self._stack.enter_async_context(opening())
        opened: Opened = self._open[key]
        return opened

    async def aclose(self) -> None:
        """Close everything that was opened."""
        await self._stack.aclose()


@asynccontextmanager
async def open_workbench(
    settings: Settings,
    *,
    corpus: str = SAMPLE,
    data_files: Sequence[Path] = (),
    datasets: Sequence[str] = (),
    **parts: Any,
) -> AsyncIterator[Workbench]:
    """A workbench, closed at the end; `parts` are additional fields.

    Raises `DataFileError` for a file that contains no questions, `UnknownNameError` for a data set that the hub does
    not have, `PromptError` for a fault in the user's own prompts or words.
    """
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    known = discover(settings.datasets_dir)
    on_hub = [name for name, dataset in known.items() if dataset.hub is not None]
    for name in datasets:
        if name not in on_hub:
            raise UnknownNameError("data set", name, on_hub)
    sets = (*packaged_questions(), *(read_questions(path, known) for path in data_files))
    with TemporaryDirectory(prefix="marag-demo-") as uploads:
        own: Any = {"question_sets": sets, "datasets": tuple(datasets), "uploads": Path(uploads)}
        workbench = Workbench(settings=settings, corpus=corpus, **own, **parts)
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
