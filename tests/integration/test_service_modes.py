"""`mode` of `POST /v1/ask`: the teacher explains checked answers and the coach asks questions, within the deadline."""

from pathlib import Path

import pytest

from meta_agent_rag.chat.coach.scope import Subject, Topic
from meta_agent_rag.llm.ledger import LedgerRow
from meta_agent_rag.service.retention import latest
from meta_agent_rag.testing import ScriptedModel
from tests.coach import ASKED as COUNTER_QUESTION
from tests.coach import EXPLAINED, reply
from tests.loop import QUESTION
from tests.service import CONTEXT, SCRIPT, code_of, running


async def test_a_teacher_explains_and_a_coach_asks_in_one_session(tmp_path: Path) -> None:
    model = ScriptedModel({**SCRIPT, "coach": [reply(COUNTER_QUESTION), reply(EXPLAINED)]})
    rows: list[LedgerRow] = []
    async with running(tmp_path, model=model) as service:
        service.service.engine.model.ledger.listeners.append(rows.append)
        taught = (await service.ask(mode="teacher", session="one")).json()
        assert (taught["mode"], taught["short_answer"]) == ("teacher", "Oslo")
        assert "learner" in str(model.asked("write")[-1].messages)
        asked = (await service.ask(mode="coach", session="one", options={"level": 2})).json()
        assert (asked["mode"], asked["answer"], asked["stop_reason"]) == ("coach", COUNTER_QUESTION, "accepted")
        assert (asked["citations"], asked["confidence_score"], asked["short_answer"]) == ([], None, "")
        assert asked["cost_usd"] > 0
        named = [(row.stage, row.question_id) for row in rows[-2:]]
        assert named == [("rewrite_query", asked["query_id"]), ("coach", asked["query_id"])]
        assert "Oslo" in str(model.asked("coach")[-1].messages), "the teacher's explanation is remembered"
        again = (await service.ask(question="The Sun turns.", mode="coach", session="one")).json()
        assert again["answer"].endswith("?")
        assert again["answer"] not in EXPLAINED
        assert again["rounds"] == 2, "a draft that breaks the rules is rewritten once"
        assert COUNTER_QUESTION in str(model.asked("coach")[-1].messages), "and so is the coach's question"
        record = (await service.client.get(f"/v1/queries/{asked['query_id']}")).json()["record"]
        assert (record["answer"], [call["stage"] for call in record["model_calls"]]) == (
            COUNTER_QUESTION,
            ["rewrite_query", "coach"],
        )
        assert (record["mode"], bool(record["passages"])) == ("coach", True)
        plain = (await service.ask(mode="teacher", question=QUESTION, session="two")).json()
        assert plain["rounds"] == 1
        for fields in ({"options": {"level": 1}}, {"mode": "coach", "options": {"level": 4}}, {"mode": "tutor"}):
            assert (await service.ask(**fields)).status_code == 422, fields
        supplied = await service.client.post("/v1/ask", json={**CONTEXT, "mode": "coach"})
        assert (supplied.status_code, code_of(supplied)) == (422, "invalid_request")
        assert (await service.client.post("/v1/ask", json={**CONTEXT, "mode": "teacher"})).status_code == 200
        await service.ask()
        modes = [row["mode"] for row in await latest(service.service.audit.engine, 20)]
        assert modes == ["teacher", "coach", "coach", "teacher", "", "", "", "", "teacher", "grounded"]


async def test_success_hint_and_topic_are_response_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = (Topic(name="mills", anchors=("the owner of the mill",)), Topic(name="water", anchors=("the river",)))
    monkeypatch.setattr("meta_agent_rag.service.resources.subject_of", lambda _: Subject(topics=topics))
    replies = [reply(COUNTER_QUESTION), reply("The stick throws it."), reply("That's right. What follows?", right=True)]
    model = ScriptedModel({**SCRIPT, "coach": replies})
    async with running(tmp_path, "SCOPE_THRESHOLD=-1", model=model) as service:
        asked = (await service.ask(mode="coach", session="one", options={"topic": "mills"})).json()
        assert (asked["success"], asked["hint"], asked["topic"]) == (False, False, "mills")
        stuck = (await service.ask(question="I don't know.", mode="coach", session="one")).json()
        assert (stuck["success"], stuck["hint"], stuck["answer"]) == (False, True, "The stick throws it.")
        right = (await service.ask(question="It belongs to the river.", mode="coach", session="one")).json()
        assert (right["success"], right["hint"], right["topic"]) == (True, False, "water")
        calls = len(model.requests)
        unknown = await service.ask(mode="coach", session="one", options={"topic": "moons"})
        assert (unknown.status_code, code_of(unknown)) == (422, "invalid_request")
        assert len(model.requests) == calls
        plain = (await service.ask()).json()
        assert (plain["success"], plain["hint"], plain["topic"]) == (None, None, None)
        for told in (asked, stuck, right, plain):
            record = (await service.client.get(f"/v1/queries/{told['query_id']}")).json()["record"]
            shown = tuple(record[name] for name in ("coach_success", "hint", "topic"))
            assert shown == (told["success"], told["hint"], told["topic"])


async def test_small_talk_to_the_coach_costs_no_call_over_http(tmp_path: Path) -> None:
    model = ScriptedModel({**SCRIPT, "coach": reply(COUNTER_QUESTION)})
    async with running(tmp_path, "SCOPE_THRESHOLD=-1", model=model) as service:
        await service.ask(mode="coach", session="one")
        calls = len(model.requests)
        thanked = (await service.ask(question="Thanks!", mode="coach", session="one")).json()
        assert (thanked["answer"], thanked["stop_reason"]) == ("You are welcome.", "small_talk")
        assert len(model.requests) == calls
