"""The service: one honest answer within a deadline, to clients with a key, and a record of it."""

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import PUMP
from tests.acceptance.doors import Fact, Model, Service, jsonl, marag

QUESTION = "How much does the Arden pump deliver?"
DELIVERS = Fact(
    asked="pump", quote=PUMP, said="The Arden pump delivers 40 litres a minute [n].", short="40 litres a minute"
)


@pytest.fixture(autouse=True)
def knowing(model: Model) -> None:
    model.facts = [DELIVERS]


def error(response: httpx.Response, status: int) -> dict[str, Any]:
    """The error of a response, which has this status."""
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()["error"]
    return found


def test_an_answer_has_citations_confidence_rounds_stop_reason_cost_and_query_id(service: Service) -> None:
    told = service.ask(QUESTION).json()
    assert told["answer"] == "The Arden pump delivers 40 litres a minute [Pumps, p.1]."
    assert told["citations"][0]["page"] == 1
    assert told["confidence_level"] in {"high", "medium", "low"}
    assert told["rounds"] >= 1
    assert told["stop_reason"]
    assert told["cost_usd"] > 0
    assert told["query_id"]


def test_context_restricted_answers_only_from_the_text_passed(service: Service, model: Model) -> None:
    context = "The Brook pump delivers 9 litres a minute."
    model.facts = [
        Fact(asked="pump", quote=context, said="The Brook pump delivers 9 litres a minute [n].", short="9 litres")
    ]
    told = service.ask(
        "How much does the Brook pump deliver?", source_mode="context-restricted", context=context
    ).json()
    assert "9 litres" in told["answer"]
    assert not any(PUMP in prompt for prompt in model.prompts)


@pytest.mark.parametrize("question", ["", "   ", "x" * 1001, "Who\x00?"])
def test_a_question_has_1_to_1000_characters_and_no_null_byte(service: Service, question: str) -> None:
    said = error(service.ask(question), 422)
    assert said["message"].endswith(".")
    assert said["request_id"]


def test_unknown_fields_are_rejected_so_that_no_question_replaces_the_system_prompt(service: Service) -> None:
    assert "system_prompt" in error(service.ask(QUESTION, system_prompt="Obey."), 422)["message"]


def test_a_request_without_a_valid_key_is_refused(service: Service) -> None:
    with httpx.Client(base_url=service.url) as client:
        error(client.post("/v1/ask", json={"question": QUESTION}), 401)
    with service.client(key="marag_wrong") as client:
        error(client.post("/v1/ask", json={"question": QUESTION}), 401)


def test_a_key_without_the_scope_is_refused(service: Service) -> None:
    with service.client("ask") as client:
        error(client.get("/metrics"), 403)


def test_a_key_is_shown_once_and_stored_as_a_digest(service: Service) -> None:
    key = service.key("ask", name="once")
    assert key["key"] not in marag("keys", "list", **service.env).stdout
    assert "once" in marag("keys", "list", **service.env).stdout
    for path in service.data.glob("*.sqlite*"):
        assert key["key"].encode() not in path.read_bytes()


def test_a_revoked_key_is_refused(service: Service) -> None:
    key = service.key("ask")
    assert marag("keys", "revoke", key["id"], **service.env).exit_code == 0
    time.sleep(2.1)
    with service.client(key=key["key"]) as client:
        error(client.get("/v1/corpora"), 401)


def test_a_key_has_a_rate_limit_with_retry_after(service: Service) -> None:
    with service.client() as client:
        told = [client.post("/v1/ask", json={"question": "Thanks!"}) for _ in range(17)]
    limited = [one for one in told if one.status_code == 429]
    assert len(limited) == 2
    assert int(limited[0].headers["retry-after"]) > 0
    assert told[0].headers["x-ratelimit-limit"] == "15"


def test_a_daily_cap_stops_a_key(service: Service) -> None:
    key = service.key("ask", words=("--daily-usd", "0.00001"))
    with service.client(key=key["key"]) as client:
        assert client.post("/v1/ask", json={"question": QUESTION}).status_code == 200
        assert client.post("/v1/ask", json={"question": QUESTION}).status_code in {402, 403, 429}


def test_past_the_deadline_the_request_is_refused_as_a_whole(service: Service, model: Model) -> None:
    model.seconds = 60
    started = time.monotonic()
    said = error(service.ask(QUESTION), 504)
    assert said["message"] == "Query processing timed out. Try a simpler question."
    assert time.monotonic() - started < 10


def test_the_deadline_is_five_seconds_by_default() -> None:
    about = marag("config", "show").stdout.partition("SERVICE_DEADLINE_SECONDS")[2].splitlines()[:2]
    assert re.search(r"\b5(\.0)?\b", " ".join(about))


def test_a_stream_sends_stages_and_then_verified_text(service: Service) -> None:
    with service.client() as client:
        told = client.post("/v1/ask/stream", json={"question": QUESTION}).text
    events = [line.partition(": ")[2] for line in told.splitlines() if line.startswith("event: ")]
    assert events[0] == "start"
    assert events.index("stage") < events.index("text") < events.index("answer")
    assert events[-1] == "done"


def test_openai_clients_list_models_and_chat(service: Service) -> None:
    with service.client() as client:
        assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["library"]
        asked = {"model": "library", "messages": [{"role": "user", "content": QUESTION}]}
        told = client.post("/v1/chat/completions", json=asked).json()
        assert "40 litres a minute" in told["choices"][0]["message"]["content"]
        assert told["usage"]["total_tokens"] > 0
        streamed = client.post("/v1/chat/completions", json={**asked, "stream": True}).text
        assert streamed.strip().endswith("data: [DONE]")
        refused = client.post("/v1/chat/completions", json={**asked, "n": 3}).json()
        assert set(refused["error"]) >= {"message", "type", "code"}


def test_documents_are_uploaded_indexed_listed_and_deleted(service: Service, model: Model) -> None:
    with service.client("ask", "ingest") as client:
        files = {"files": ("otters.md", b"# Otters\n\nThe otter of Brook Lane weighs 9 kilograms.\n")}
        sent = client.post("/v1/documents?corpus=library", files=files)
        assert sent.status_code in {200, 201, 202}, sent.text
        (document,) = sent.json()["documents"]
        for _ in range(300):
            status = client.get(f"/v1/documents/{document['id']}").json()
            if status["state"] not in {"queued", "parsing"}:
                break
            time.sleep(1)
        assert status["state"] == "indexed", status
        assert "otters.md" in client.get("/v1/documents").text
        assert client.delete(f"/v1/documents/{document['id']}").status_code in {200, 204}
        assert "Otters" not in client.get("/v1/corpora/library/documents").text


def test_an_upload_of_an_unknown_type_is_refused(service: Service) -> None:
    with service.client("ingest") as client:
        error(client.post("/v1/documents?corpus=library", files={"files": ("a.exe", b"MZ")}), 415)


def test_the_corpora_are_listed(service: Service) -> None:
    with service.client() as client:
        assert "library" in client.get("/v1/corpora").text


def test_a_record_is_for_its_own_client_alone(service: Service) -> None:
    with service.client() as client, service.client() as other:
        query = client.post("/v1/ask", json={"question": QUESTION}).json()["query_id"]
        record = client.get(f"/v1/queries/{query}").json()["record"]
        assert record["question"] == QUESTION
        error(other.get(f"/v1/queries/{query}"), 404)


def test_every_response_leaves_one_row(service: Service) -> None:
    key = service.key("ask", name="counted")
    with service.client(key=key["key"]) as client:
        for _ in range(3):
            client.post("/v1/ask", json={"question": QUESTION})
        client.post("/v1/ask", json={"question": ""})
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and len(found) < 4:
        time.sleep(0.2)
        file = Path(f"export-{time.monotonic_ns()}.jsonl")
        assert marag("audit", "export", str(file), "--client", key["id"], **service.env).exit_code == 0
        found = jsonl(file)
    assert len(found) == 4
    answered = [row for row in found if row.get("answer")]
    assert len(answered) == 3
    assert all(row["passages"] and row["model_calls"] for row in answered)


def test_records_are_shown_by_tail(service: Service) -> None:
    service.ask(QUESTION)
    time.sleep(1)
    assert QUESTION in " ".join(marag("audit", "tail", **service.env).stdout.split())


def test_records_are_kept_hot_for_90_and_warm_for_365_days() -> None:
    shown = " ".join(marag("config", "show").stdout.split())
    assert "AUDIT_HOT_DAYS = 90" in shown
    assert "365" in shown


def test_pruning_is_a_dry_run_first(service: Service) -> None:
    before = marag("audit", "prune", **service.env)
    assert before.exit_code == 0
    assert "--yes" in before.stdout + before.stderr


def test_one_client_is_forgotten_on_request(service: Service) -> None:
    key = service.key("ask", name="gone")
    with service.client(key=key["key"]) as client:
        client.post("/v1/ask", json={"question": QUESTION})
    time.sleep(1)
    marag("keys", "revoke", key["id"], **service.env)
    assert marag("audit", "forget", key["id"], "--yes", **service.env).exit_code == 0
    file = Path("after.jsonl")
    marag("audit", "export", str(file), "--client", key["id"], **service.env)
    assert not file.exists() or jsonl(file) == []


def test_health_readiness_metrics_and_openapi(service: Service) -> None:
    with service.client("admin") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200
        assert "marag_requests_total" in client.get("/metrics").text
        assert "/v1/ask" in client.get("/openapi.json").json()["paths"]


def test_security_headers_and_request_ids(service: Service) -> None:
    told = service.ask(QUESTION)
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.headers["x-request-id"]


def test_the_log_holds_neither_key_nor_question(service: Service) -> None:
    key = service.key("ask")["key"]
    with service.client(key=key) as client:
        client.post("/v1/ask", json={"question": "Which pump of Brook Lane is secret?"})
    log = service.log.read_text()
    assert key not in log
    assert "Brook Lane is secret" not in log


def test_the_model_failing_gives_503_without_internals(service: Service, model: Model) -> None:
    model.status = 401
    said = error(service.ask(QUESTION), 503)
    assert "sk-" not in json.dumps(said)


def test_teacher_and_coach_are_modes_of_a_request(service: Service, model: Model) -> None:
    model.coach = [{"reply": "What does a pump move?", "answer": "", "acknowledges_right_answer": False}]
    told = service.ask("How does the Arden pump move water?", mode="coach", options={"level": 2})
    assert told.status_code == 200, told.text
    assert told.json()["answer"].endswith("?") or told.json()["refused"] == "out_of_scope"


def test_session_follow_ups_are_understood(service: Service, model: Model) -> None:
    with service.client() as client:
        client.post("/v1/ask", json={"question": QUESTION, "session": "one"})
        model.rewrites = {"And per minute?": QUESTION}
        told = client.post("/v1/ask", json={"question": "And it per minute?", "session": "one"})
        assert told.status_code == 200


def test_small_talk_is_answered_without_a_call(service: Service, model: Model) -> None:
    assert service.ask("Thanks!").status_code == 200
    assert model.bodies == []
