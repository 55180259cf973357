"""Any chat model of LangChain's behind the same door: what is sent, read, counted and recorded."""

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_deepseek import ChatDeepSeek
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typer.testing import CliRunner

from benchmarks.runner import app
from meta_agent_rag import Passage, answer
from meta_agent_rag.errors import InputError, ModelError, SettingsError
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel, universal_reply
from meta_agent_rag.testing.server import LoopbackServer, ServerReply, always, helpful, loopback_server
from tests.loopback import ASK, GOOD, Answer, in_turn

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Clients of LangChain's that are shared by a process end after their event loop."""
KEY = SecretStr("sk-0123456789-very-secret")
LIGHT = Passage.of("Selwick Light", "Selwick Light was designed by Anna Brandt in 1871.")
GROUNDED = universal_reply(
    "Anna Brandt", quotes=[LIGHT.text], answer="Selwick Light was designed by Anna Brandt [1].", confidence=0.9
)


class Providers(LoopbackServer):
    """Also speaks the protocols of Anthropic and Ollama."""

    async def anthropic(self, request: Request) -> Response:
        """Answer `POST /v1/messages`."""
        body, reply = await self._asked(request)
        if reply.status != 200:
            return JSONResponse(dict(reply.body or {}), status_code=reply.status, headers=dict(reply.headers))
        usage = {"input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60}
        text = {"type": "text", "text": reply.text}
        reason = {"stop": "end_turn", "length": "max_tokens"}.get(reply.finish_reason, reply.finish_reason)
        message = {"id": "m", "type": "message", "role": "assistant", "model": f"{body['model']}-20251001"}
        return JSONResponse({**message, "content": [text], "stop_reason": reason, "usage": usage})

    async def ollama(self, request: Request) -> Response:
        """Answer `POST /api/chat`."""
        body, reply = await self._asked(request)
        if reply.status != 200:
            return JSONResponse({"error": "no such model"}, status_code=reply.status)
        whole = {"model": body["model"], "done": True, "done_reason": reply.finish_reason}
        message = {"role": "assistant", "content": reply.text}
        return Response(json.dumps({**whole, "message": message, "prompt_eval_count": 100, "eval_count": 20}) + "\n")

    async def _asked(self, request: Request) -> tuple[dict[str, Any], ServerReply]:
        body = json.loads(await request.body())
        self.bodies.append(body)
        return body, self.behaviour(body)

    def app(self) -> Starlette:
        """The application."""
        routes = {"/v1/messages": self.anthropic, "/api/chat": self.ollama}
        app = super().app()
        app.router.routes += [Route(path, answer, methods=["POST"]) for path, answer in routes.items()]
        return app


def chat_of(kind: str, server: LoopbackServer) -> BaseChatModel:
    root = server.base_url.removesuffix("/v1")
    if kind == "openai":
        return ChatOpenAI(model="gpt-4.1-mini", base_url=server.base_url, api_key=KEY)
    if kind == "deepseek":
        return ChatDeepSeek(model_name="deepseek-v4-flash", api_base=server.base_url, api_key=KEY)
    if kind == "anthropic":
        return ChatAnthropic(model="claude-haiku-4-5", base_url=root, api_key=KEY)
    return ChatOllama(model="llama3.2", base_url=root)


KINDS = ["openai", "deepseek", "anthropic", "ollama"]
LIMIT = {"openai": "max_completion_tokens", "deepseek": "max_tokens", "anthropic": "max_tokens"}


def settings_in(folder: Path, **values: Any) -> Settings:
    return Settings.load(marag_data_dir=folder, response_cache=False, **values)


async def rows_of(
    model: BaseChatModel, folder: Path, schema: Any = Answer, **values: Any
) -> tuple[Any, list[LedgerRow]]:
    async with open_language_model(settings_in(folder, **values), model=model) as opened:
        session = opened.session("q")
        return await session.ainvoke("write", ASK, schema), session.rows


@pytest.mark.parametrize("kind", KINDS)
async def test_every_model_answers_with_its_limit_and_schema_and_is_recorded(kind: str, tmp_path: Path) -> None:
    with loopback_server(always(GOOD), kind=Providers) as server:
        got, (row,) = await rows_of(chat_of(kind, server), tmp_path)
    assert got == Answer(answer="Goethe")
    (body,) = server.bodies
    sent = body["options"]["num_predict"] if kind == "ollama" else body[LIMIT[kind]]
    temperature = body["options"]["temperature"] if kind == "ollama" else body["temperature"]
    assert (sent, temperature) == (700, 0.0)
    assert (row.provider, row.stage, row.tier) == (kind, "write", "flash")
    assert (row.prompt_tokens, row.completion_tokens, row.usage_known) == (100, 20, True)
    assert row.answered_by == {"anthropic": "claude-haiku-4-5-20251001"}.get(kind, row.model)
    if kind in ("anthropic", "deepseek"):
        assert row.cache_hit_tokens == 60
        assert row.cost_usd is not None
        assert row.cost_usd > 0
    if kind == "ollama":
        assert row.cost_usd == Decimal(0), "a server of one's own"
        assert body["format"]["properties"].keys() == {"answer"}, "structured output is asked for as each model can"
    elif kind == "anthropic":
        assert "answer" in json.dumps(body["output_config"]["format"]["schema"]["properties"])
    else:
        assert body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("kind", ["openai", "deepseek", "anthropic"])
async def test_the_retries_are_ours(kind: str, tmp_path: Path) -> None:
    busy = ServerReply(status=429, headers={"retry-after-ms": "5"}, body={"error": {"message": "slow down"}})
    with loopback_server(in_turn(busy, busy, GOOD), kind=Providers) as server:
        _, rows = await rows_of(chat_of(kind, server), tmp_path)
    assert len(server.bodies) == 3
    assert [row.error for row in rows] == ["BusyError", "BusyError", None]


class Nameless(FakeListChatModel):
    """Describes itself by its fields alone, like most classes of users'."""

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {}


async def test_objects_of_one_class_that_answer_differently_do_not_share_replies(tmp_path: Path) -> None:
    settings = Settings.load(marag_data_dir=tmp_path, response_cache=True)
    said = []
    for name in ("Goethe", "Schiller"):
        model = Nameless(responses=[json.dumps({"answer": name})])
        async with open_language_model(settings, model=model) as opened:
            said.append((await opened.session().ainvoke("write", ASK, Answer)).answer)
    assert said == ["Goethe", "Schiller"]


class Wrapping(Nameless):
    """Hides what it asks in a client."""

    client: Any

    def _call(self, *args: Any, **kwargs: Any) -> str:
        return json.dumps({"answer": self.client()})


async def test_wrappers_of_different_clients_do_not_share_replies(tmp_path: Path) -> None:
    settings = Settings.load(marag_data_dir=tmp_path, response_cache=True)
    said = []
    for client in (lambda: "Goethe", lambda: "Schiller"):
        async with open_language_model(settings, model=Wrapping(client=client, responses=[])) as opened:
            said.append((await opened.session().ainvoke("write", ASK, Answer)).answer)
    assert said == ["Goethe", "Schiller"]


@pytest.mark.parametrize(
    ("said", "left_out"),
    [
        ("`temperature` is deprecated for this model.", "temperature"),
        ("output_config.format: Extra inputs are not permitted", "output_config"),
    ],
)
async def test_what_a_model_of_anthropics_rejects_is_left_out(said: str, left_out: str, tmp_path: Path) -> None:
    def answered(body: dict[str, Any]) -> ServerReply:
        return ServerReply(status=400, body={"error": {"message": said}}) if left_out in body else GOOD

    with loopback_server(answered, kind=Providers) as server:
        got, _ = await rows_of(chat_of("anthropic", server), tmp_path)
    assert got == Answer(answer="Goethe")


async def test_reasoning_of_anthropics_has_its_budget_beside_the_reply(tmp_path: Path) -> None:
    with loopback_server(always(GOOD), kind=Providers) as server:
        thinking = {"type": "enabled", "budget_tokens": 2048}
        model = chat_of("anthropic", server).model_copy(update={"thinking": thinking})
        await rows_of(model, tmp_path)
    assert server.bodies[0]["max_tokens"] == 700 + 2048
    assert "temperature" not in server.bodies[0]


async def test_what_a_server_rejected_as_invalid_is_asked_again(tmp_path: Path) -> None:
    invalid = {"message": "Failed to generate JSON.", "code": "json_validate_failed", "failed_generation": "Goethe"}
    with loopback_server(in_turn(ServerReply(status=400, body={"error": invalid}), GOOD)) as server:
        got, rows = await rows_of(chat_of("openai", server), tmp_path)
    assert (got, [row.attempt for row in rows]) == (Answer(answer="Goethe"), [0, 1])


async def test_a_secret_of_a_model_that_its_server_repeats_is_not_shown(tmp_path: Path) -> None:
    echo = ServerReply(status=400, body={"error": {"message": f"Received={KEY.get_secret_value()}"}})
    with loopback_server(always(echo)) as server, pytest.raises(ModelError, match=r"Received=\*\*\*"):
        await rows_of(chat_of("openai", server), tmp_path)


async def test_a_given_pro_model_leaves_the_other_tier_where_it_is(tmp_path: Path) -> None:
    with loopback_server(always(GOOD)) as server:
        settings = settings_in(tmp_path, llm_base_url=server.base_url, flash_model="own", deepseek_api_key="sk-other")
        async with open_language_model(settings, pro=chat_of("openai", server)) as opened:
            assert opened.choice.tiers["flash"].base_url == server.base_url


async def test_the_embedded_model_costs_nothing_under_a_limit(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, llm_provider="embedded", cost_limit_usd=0.01)
    async with open_language_model(settings, model=ScriptedModel({"write": {"answer": "Goethe"}})) as opened:
        assert await opened.session().ainvoke("write", ASK, Answer) == Answer(answer="Goethe")


def test_both_tiers_follow_the_provider_and_the_settings_of_a_prefixed_model() -> None:
    settings = Settings.load(["FLASH_MODEL=anthropic:small", "PRO_MODEL=large", "PRO_THINKING=true"])
    pro = choose_provider(settings).tiers["pro"]
    assert (pro.provider.name, pro.model, pro.thinking) == ("anthropic", "large", True)


async def test_a_model_without_json_mode_is_parsed_and_asked_again(tmp_path: Path) -> None:
    refusal = {"error": {"message": "response_format: Extra inputs are not permitted", "type": "invalid_request_error"}}
    prose = iter(["Goethe, of course.", GOOD.text])

    def plain(body: dict[str, Any]) -> ServerReply:
        refused = "response_format" in body
        return ServerReply(status=400, body=refusal) if refused else ServerReply(text=next(prose))

    with loopback_server(plain) as server:
        got, rows = await rows_of(chat_of("openai", server), tmp_path)
    assert got == Answer(answer="Goethe")
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    assert [(row.attempt, row.error) for row in rows] == [(0, None), (1, None)]


async def test_a_fake_of_langchain_answers_a_question(tmp_path: Path) -> None:
    fake = FakeListChatModel(responses=[json.dumps(GROUNDED)])
    found = await answer("Who designed Selwick Light?", evidence=[LIGHT], settings=settings_in(tmp_path), model=fake)
    assert found.short_answer == "Anna Brandt"
    assert {row.provider for row in found.calls} == {"fakelistchatmodel"}
    assert not any(row.usage_known for row in found.calls)
    assert found.totals.cost_usd is None, "an unknown price is not 0"


@pytest.mark.parametrize("wrong", ["gpt-4.1", ChatOpenAI, object()], ids=["name", "class", "object"])
async def test_something_that_is_no_chat_model_is_refused_in_one_sentence(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"The model must be a chat model of LangChain's .*; pass, for instance, "
    ) as caught:
        await answer("Who?", evidence=[LIGHT], settings=settings_in(tmp_path), model=wrong)
    assert str(caught.value).count(". ") <= 1


async def test_an_integration_by_name_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_server(always(GOOD), kind=Providers) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY.get_secret_value())
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url.removesuffix("/v1"))
        async with open_language_model(settings_in(tmp_path, flash_model="anthropic:claude-haiku-4-5")) as opened:
            session = opened.session()
            assert await session.ainvoke("write", ASK, Answer) == Answer(answer="Goethe")
    assert (session.rows[0].provider, session.rows[0].model) == ("anthropic", "claude-haiku-4-5")


async def test_a_missing_integration_is_named_with_its_package(tmp_path: Path) -> None:
    assert "langchain_mistralai" not in sys.modules
    with pytest.raises(SettingsError, match=r"not installed; run: pip install langchain-mistralai\.$"):
        async with open_language_model(settings_in(tmp_path, flash_model="mistralai:mistral-small")):
            pass


def test_a_run_with_an_integration_is_replayed_without_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, scores = tmp_path / "record.jsonl", []
    with loopback_server(helpful(), kind=Providers) as server, monkeypatch.context() as env:
        env.setenv("ANTHROPIC_API_KEY", KEY.get_secret_value())
        env.setenv("ANTHROPIC_BASE_URL", server.base_url.removesuffix("/v1"))
        env.setenv("FLASH_MODEL", "anthropic:claude-haiku-4-5")
        words = ["--dataset", "sample", "--mode", "gold", "--limit", "1-2", "--method", "standard_rag"]
        done = CliRunner().invoke(app, [*words, "--record", str(record), "--output-dir", "RUN", "--no-plots"])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["--replay", str(record), "--output-dir", "REPLAY", "--no-plots"])
    assert done.exit_code == 0, done.output
    for folder in ("RUN", "REPLAY"):
        scores += [path.read_bytes() for path in Path(folder).rglob("summary.json")]
    assert len(scores) == 2
    assert scores[0] == scores[1]
