"""Opens what a run of the graph needs: settings, model, encoder, registries and, from a question, its `Context`.

An engine opens it once and closes it. A graph in somebody else's hands opens it on first use, once for each event loop;
it is closed when that loop shuts down.
"""

import asyncio
import atexit
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import InputError
from ..llm.client import LanguageModel
from ..llm.opening import Given, open_language_model, with_model
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.sample import SAMPLE
from ..retrieval.hybrid import Retriever
from ..retrieval.open_retriever import open_retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import Dropped, screen
from ..retrieval.supplied import SuppliedRetriever
from ..settings import Settings
from .context import Context, Task
from .deficits import DeficitRegistry, discover_deficits
from .derivation.operator import Operators, discover_operators
from .monitor import monitor_encoder as encoder_of_monitor
from .monitor import policy
from .routes.route import Routes, discover_routes
from .state import State
from .voting import small_model_defaults

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_CLOSING_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Components:
    """What all questions share: the settings, the model and encoder, and the registries."""

    settings: Settings
    model: LanguageModel
    monitor_encoder: AsyncEncoder
    deficits: DeficitRegistry
    operators: Operators = field(default_factory=discover_operators, repr=False)
    routes: Routes = field(default_factory=discover_routes, repr=False)

    def begin(self, task: Task) -> tuple[State, Context]:
        """The initial state and context, for callers that run the graph node by node; raises `InputError` like `run`.

        If there is more evidence than RETRIEVAL_TOP_K, the best passages are shown first, and the rest is searched
        when something is missing, unless SUPPLIED_EVIDENCE is `whole`. In `grounded` runs, passages that address the
        model are removed before ranking.
        """
        require_question(task.question)
        question, retriever = task.question.strip(), None if task.retriever is None else as_retriever(task.retriever)
        evidence: Sequence[Passage] | None = None if task.evidence is None else as_passages(task.evidence)
        if evidence is None and retriever is None:
            raise InputError(
                "There is nothing to answer from; give evidence or a retriever, or evidence=() for memory alone."
            )
        dropped: tuple[Dropped, ...] = ()
        if evidence is not None and task.grounded and self.settings.screening:
            evidence, dropped = _without_orders(evidence)
        if evidence is not None and retriever is None and self.narrows(evidence):
            retriever, evidence = SuppliedRetriever(passages=tuple(evidence), encoder=self.monitor_encoder), None
        context = Context(
            settings=self.settings,
            model=self.model.session(task.id, method=task.method, deadline=task.deadline, on_text=task.on_text),
            monitor_encoder=self.monitor_encoder,
            deficits=self.deficits,
            operators=self.operators,
            routes=self.routes,
            retriever=retriever,
            evidence=None if evidence is None else tuple(evidence),
            dropped=dropped,
            oracles=task.oracles,
            grounded=task.grounded,
            asked="" if task.asked.strip() == question else task.asked.strip(),
            conversation=task.conversation,
            manner=task.manner,
            deadline=task.deadline,
        )
        return State(question=question), context

    def narrows(self, evidence: Sequence[Passage]) -> bool:
        """Is there more evidence than a first draft is shown, so that the rest is searched on demand?"""
        settings = self.settings
        return settings.supplied_evidence == "ranked" and len(evidence) > settings.retrieval_top_k


def require_question(question: str) -> None:
    """Raise `InputError` for a question that is empty or not valid text."""
    if not isinstance(question, str) or not question.strip():
        raise InputError("The question is empty; write one.")
    if not question.isascii() and question.encode("utf-8", "ignore").decode("utf-8") != question:
        raise InputError("The question is not valid Unicode; check the terminal's encoding and type it again.")


def as_retriever(given: object) -> Retriever:
    """What a caller passed as a retriever: one of this package, or of LangChain's. Raises `InputError` for others."""
    if callable(getattr(given, "retrieve", None)):
        return given  # type: ignore[return-value]
    if callable(getattr(given, "ainvoke", None)) and hasattr(given, "_get_relevant_documents"):
        from ..retrieval.langchain import ForeignRetriever

        return ForeignRetriever(inner=given)  # type: ignore[arg-type]
    raise InputError(
        f"{type(given).__name__} is no retriever; pass a LangChain BaseRetriever, or what open_retriever gives."
    )


def as_passages(evidence: Iterable[Passage]) -> tuple[Passage, ...]:
    """The evidence; raises `InputError` for what is no passage with text, and for different ones with the same id."""
    try:
        evidence = tuple(evidence)
    except TypeError:
        raise InputError(f"Evidence must be a list of passages, not {type(evidence).__name__}.") from None
    evidence = tuple(_of_document(one) if hasattr(one, "page_content") else one for one in evidence)
    known: dict[str, Passage] = {}
    for passage in evidence:
        texts = (passage.id, passage.title, passage.text) if isinstance(passage, Passage) else (None,)
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"Evidence must be passages with an id, a title and a text, not {type(passage).__name__}.")
        same = known.setdefault(passage.id, passage)
        if (same.title, same.text) != (passage.title, passage.text):
            raise InputError(f"Two passages have the id {passage.id!r}; `Passage.of(title, text)` makes unique ones.")
    return evidence


def _of_document(document: Any) -> Passage:
    """A document of LangChain's as a passage."""
    title = document.metadata.get("title") or document.metadata.get("source") or ""
    return Passage.of(str(title), document.page_content)


def _without_orders(evidence: Sequence[Passage]) -> tuple[tuple[Passage, ...], tuple[Dropped, ...]]:
    screened = screen([Found(passage=passage, score=0.0) for passage in evidence], drop=True, shortest=0)
    return tuple(found.passage for found in screened.kept), screened.dropped


@asynccontextmanager
async def open_components(
    settings: Settings,
    *,
    model: Given = None,
    pro: "BaseChatModel | None" = None,
    monitor_encoder: AsyncEncoder | None = None,
    ledger_path: Path | None = None,
    without_deficits: Sequence[str] = (),
) -> AsyncIterator[Components]:
    """The components as the settings describe them; those passed in are used instead, and left open.

    `model` is any chat model of LangChain's, for both tiers unless there is a `pro`, or an open `LanguageModel`.
    """
    policy(settings)
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    settings = small_model_defaults(with_model(settings, model, pro))
    usual = Settings.model_fields["monitor_similarity_threshold"].default
    if settings.monitor_policy != "paper" and settings.monitor_similarity_threshold != usual:
        _LOG.warning("MONITOR_SIMILARITY_THRESHOLD only applies with MONITOR_POLICY=paper and is ignored.")
    deficits = discover_deficits(settings.deficits_dir)
    if without_deficits:
        deficits = deficits.without(without_deficits)
    encoder = monitor_encoder or AsyncEncoder(encoder_of_monitor(settings))
    async with open_language_model(settings, model=model, pro=pro, ledger_path=ledger_path) as opened:
        yield Components(
            settings=settings,
            model=opened,
            monitor_encoder=encoder,
            deficits=deficits,
            operators=discover_operators(settings.operators_dir),
            routes=discover_routes(settings.routes_dir),
        )


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run of the graph uses, for callers without an engine; every field may be left out.

    - `corpus`: the name of the corpus to search; by default the sample.
    - `retriever`: searches instead of a corpus: any retriever of LangChain's or of this package.
    - `evidence`: passages, or documents of LangChain's, to answer from.
    - `model`: a chat model of LangChain's; by default what the settings choose.
    - `settings`: by default those of the environment.
    - `grounded`: answer from the evidence alone, or say NOT FOUND.
    """

    corpus: str | None = None
    retriever: Any = None
    evidence: Any = None
    model: Any = None
    settings: Any = None
    grounded: bool | None = None

    def updated(self, *given: object) -> "Resources":
        """These, overridden by what mappings or objects give under the same names."""
        values = {field.name: getattr(self, field.name) for field in fields(Resources)}
        for source in given:
            for one in fields(Resources):
                value = source.get(one.name) if isinstance(source, Mapping) else getattr(source, one.name, None)
                if value is not None:
                    values[one.name] = value
        return Resources(**values)


async def context_of(question: object, resources: Resources, *, deficits: DeficitRegistry) -> Context:
    """The context for a question asked without an engine. Raises `InputError` and whatever opening may raise."""
    if not isinstance(question, str) or not question.strip():
        raise InputError('The graph was given no question; call it with {"question": "..."}.')
    chosen, model = resources.settings, resources.model
    components = await _held(
        ("components", id(chosen), id(model)), lambda: open_components(chosen or Settings.load(), model=model)
    )
    retriever: Any = resources.retriever
    if retriever is None and resources.evidence is None:
        settings, corpus = components.settings, resources.corpus or SAMPLE
        retriever = await _held(("corpus", id(chosen), corpus), lambda: open_retriever(settings, corpus))
    evidence = None if resources.evidence is None else as_passages(resources.evidence)
    task = Task(
        question=question, evidence=evidence, retriever=retriever, grounded=bool(resources.grounded), method="langgraph"
    )
    return replace(components.begin(task)[1], deficits=deficits)


_Key: TypeAlias = tuple[asyncio.AbstractEventLoop, Hashable]
_HELD: dict[_Key, tuple[asyncio.Future[Any], asyncio.Task[None]]] = {}


async def _held(name: Hashable, opened: Callable[[], AbstractAsyncContextManager[_T]]) -> _T:
    """What a context manager gives, opened once for each event loop by a task that the loop's end cancels."""
    loop = asyncio.get_running_loop()
    key: _Key = (loop, name)
    if key not in _HELD:
        given: asyncio.Future[_T] = loop.create_future()
        holding = loop.create_task(_hold(opened, given), context=contextvars.Context())
        _HELD[key] = given, holding

        def ended(task: asyncio.Task[None]) -> None:
            del _HELD[key]
            if not task.cancelled() and (error := task.exception()) is not None and not given.done():
                given.set_exception(error)

        holding.add_done_callback(ended)
    value: _T = await asyncio.shield(_HELD[key][0])
    return value


async def _hold(opened: Callable[[], AbstractAsyncContextManager[_T]], given: asyncio.Future[_T]) -> None:
    async with opened() as value:
        given.set_result(value)
        await asyncio.Event().wait()


@cache
def _background() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread until the process ends; what it opened is closed then."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="metarag", daemon=True).start()
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(_closed(), loop).result(_CLOSING_SECONDS))
    return loop


async def _closed() -> None:
    own = [task for (loop, _), (_, task) in _HELD.items() if loop is asyncio.get_running_loop()]
    for task in own:
        task.cancel()
    await asyncio.gather(*own, return_exceptions=True)


def in_background(work: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine returns, for callers without an event loop; always on the same loop, with its open clients."""
    return asyncio.run_coroutine_threadsafe(work, _background()).result()
