"""API keys: authentication, storage, rate limits and cost caps."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import update

from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.service.database import KEYS
from meta_agent_rag.testing import ScriptedModel
from tests.service import ASKED, SCRIPT, bearer, code_of, running


async def test_requests_without_a_valid_key_and_scope_are_rejected(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        id_ = service.token.split("_")[1]
        wrong = [
            "",
            "Basic abc",
            "Bearer",
            "Bearer sk-1",
            f"Bearer marag_{id_}_{'x' * 43}",
            f"Bearer marag_{'0' * 12}_{'x' * 43}",
            f"Bearer {service.token}x",
            "Bearer \xe9\xff",
        ]
        for header in wrong:
            raw = [(b"authorization", header.encode("latin-1"))]
            response = await service.client.post("/v1/ask", json=ASKED, headers=raw)
            assert response.status_code == 401, header
            assert code_of(response) in {"missing_key", "invalid_key"}
            assert response.headers["www-authenticate"] == "Bearer"
        ingests = await service.token_for("uploads", "ingest", "admin")
        response = await service.client.post("/v1/ask", json=ASKED, headers=bearer(ingests))
        assert (response.status_code, code_of(response)) == (403, "forbidden")
        assert service.model.requests == []


async def test_expired_and_revoked_keys_are_rejected(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        token = await service.token_for("short", days=1)
        id_ = token.split("_")[1]
        async with service.service.keys.engine.begin() as connection:
            past = datetime.now(UTC) - timedelta(seconds=1)
            await connection.execute(update(KEYS).where(KEYS.c.id == id_).values(expires=past))
        expired = await service.client.post("/v1/ask", json=ASKED, headers=bearer(token))
        assert (expired.status_code, "expired" in expired.text) == (401, True)
        assert (await service.ask()).status_code == 200
        await service.service.keys.revoke(service.token.split("_")[1])
        revoked = await service.ask()
        assert (revoked.status_code, "revoked" in revoked.text) == (401, True)


async def test_a_rate_limit_persists_across_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, "SERVICE_RATE_PER_MINUTE=3") as service:
        token = service.token
        first = await service.ask()
        assert (first.headers["x-ratelimit-limit"], first.headers["x-ratelimit-remaining"]) == ("3", "2")
        assert (await service.ask(question="")).status_code == 422, "invalid requests count too"
        other = await service.token_for("other")
        assert (await service.client.post("/v1/ask", json=ASKED, headers=bearer(other))).status_code == 200
    async with running(tmp_path, "SERVICE_RATE_PER_MINUTE=3") as service:
        outcomes = await asyncio.gather(
            *(service.client.post("/v1/ask", json=ASKED, headers=bearer(token)) for _ in range(4))
        )
        refused = [response for response in outcomes if response.status_code == 429]
        assert sorted(response.status_code for response in outcomes) == [200, 429, 429, 429]
        assert all(code_of(response) == "rate_limited" for response in refused)
        assert all(1 <= int(response.headers["retry-after"]) <= 60 for response in refused)
        assert refused[0].headers["x-ratelimit-remaining"] == "0"
        reads = await service.client.get(f"/v1/queries/{'0' * 32}", headers=bearer(token))
        assert reads.status_code == 404, "reads are counted separately"


async def test_a_key_cannot_exceed_its_daily_cost_cap(tmp_path: Path) -> None:
    async with running(tmp_path, model=ScriptedModel(SCRIPT)) as service:
        cost = (await service.ask()).json()["cost_usd"]
        token = await service.token_for("poor", daily_usd=1.5 * cost)

        async def asked() -> int:
            return (await service.client.post("/v1/ask", json=ASKED, headers=bearer(token))).status_code

        assert [await asked() for _ in range(3)] == [200, 200, 429]
        response = await service.client.post("/v1/ask", json=ASKED, headers=bearer(token))
        assert code_of(response) == "daily_cost_cap"
        assert 0 < int(response.headers["retry-after"]) <= 86_400
        assert (await service.ask()).status_code == 200, "other keys still work"


class _Hanging(ScriptedModel):
    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(30)
        raise AssertionError


async def test_timed_out_requests_count_towards_the_cap(tmp_path: Path) -> None:
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.5", model=_Hanging()) as service:
        token = await service.token_for("poor", daily_usd=0.000001)
        codes = [(await service.client.post("/v1/ask", json=ASKED, headers=bearer(token))) for _ in range(2)]
        assert [response.status_code for response in codes] == [504, 429]
        assert code_of(codes[1]) == "daily_cost_cap"


async def test_a_capped_key_is_refused_if_the_price_is_unknown(tmp_path: Path) -> None:
    settings = ("FLASH_MODEL=unheard-of", "PRO_MODEL=unheard-of")
    async with running(tmp_path, *settings) as service:
        token = await service.token_for("capped", daily_usd=1.0)
        response = await service.client.post("/v1/ask", json=ASKED, headers=bearer(token))
        assert (response.status_code, code_of(response)) == (503, "unpriced_model")
        assert (await service.ask()).status_code == 200
