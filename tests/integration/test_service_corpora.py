"""The documents of a corpus over HTTP, and what happens to the records of repeated uploads."""

from pathlib import Path
from typing import Any

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from tests.integration.test_service_documents import TUNNEL, files_of, final_status, serving
from tests.loop import BIRTH_SENTENCE, FILM_SENTENCE, QUESTION, settings_in
from tests.service import CONTEXT, Running, bearer, code_of, film_retrievers, running

INN = b"# The Ferry Inn\n\nThe Ferry Inn stands at Lund, beside the old road.\n"
LIST = "/v1/corpora/films/documents"


async def _sent(service: Running, key: dict[str, str], name: str, content: bytes) -> dict[str, Any]:
    """Upload a file and wait for its final status."""
    taken = await service.client.post("/v1/documents", files=[("files", (name, content))], headers=key)
    assert taken.status_code == 202, taken.text
    (accepted,) = taken.json()["documents"]
    return await final_status(service, key, accepted["id"])


async def _states(service: Running, key: dict[str, str]) -> dict[str, tuple[str, int, bool]]:
    """State, passages and whether there is a message, by id."""
    listed = (await service.client.get("/v1/documents", headers=key)).json()["documents"]
    return {one["id"]: (one["state"], one["passages"], one["message"] is not None) for one in listed}


async def test_an_unchanged_upload_keeps_its_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        first = await _sent(service, key, "k.txt", TUNNEL)
        for _ in range(2):
            assert await _sent(service, key, "k.txt", TUNNEL) == first
        twice = [("files", ("inn.md", INN)), ("files", ("inn.md", INN))]
        one, other = (await service.client.post("/v1/documents", files=twice, headers=key)).json()["documents"]
        assert one["id"] == other["id"], "the first is still waiting"
        assert (await final_status(service, key, one["id"]))["state"] == "indexed"
        stranger = bearer(await service.token_for("others", "ingest"))
        theirs = await _sent(service, stranger, "k.txt", TUNNEL)
        assert theirs["id"] != first["id"], "another key's id is not disclosed"
        gone = await service.client.delete(f"/v1/documents/{theirs['id']}", headers=stranger)
        assert gone.json()["state"] == "deleted"
        assert (await final_status(service, key, first["id"]))["passages"] == 1, "the copy has a document now"
        await service.client.delete(f"/v1/documents/{first['id']}", headers=key)
        again = await _sent(service, key, "k.txt", TUNNEL)
        assert (again["state"], again["id"] == first["id"]) == ("indexed", False), "its document was deleted meanwhile"


async def test_replaced_uploads_and_copies_that_take_over_say_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        old = await _sent(service, key, "tunnel.md", TUNNEL)
        copy = await _sent(service, key, "copy.md", TUNNEL)
        assert (copy["passages"], copy["doc_id"], "another document" in copy["message"]) == (0, None, True)
        new = await _sent(service, key, "tunnel.md", INN)
        await final_status(service, key, copy["id"])
        states = await _states(service, key)
        assert states == {
            new["id"]: ("indexed", 1, False),
            copy["id"]: ("indexed", 1, False),
            old["id"]: ("replaced", 0, True),
        }
        second = await _sent(service, key, "second.md", INN)
        assert second["passages"] == 0
        await service.client.delete(f"/v1/documents/{new['id']}", headers=key)
        await final_status(service, key, second["id"])
        states = await _states(service, key)
        assert states == {
            second["id"]: ("indexed", 1, False),
            copy["id"]: ("indexed", 1, False),
            old["id"]: ("replaced", 0, True),
        }


async def test_documents_of_a_corpus_are_listed_shown_and_removed(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        client = service.client
        sent = await _sent(service, key, "tunnel.md", TUNNEL)
        assert (sent["title"], bool(sent["doc_id"])) == ("The Ridge Tunnel", True)
        listed = (await client.get(LIST)).json()["documents"]  # a key that may only ask
        assert len(listed) == 3
        address = f"{LIST}/{sent['doc_id']}"
        tunnel = next(one for one in listed if one["doc_id"] == sent["doc_id"])
        assert tunnel == {
            "doc_id": sent["doc_id"],
            "title": "The Ridge Tunnel",
            "file": "tunnel.md",
            "kind": "markdown",
            "pages": None,
            "passages": 1,
        }
        assert (await client.get(f"{LIST}?limit=1&offset=1")).json()["documents"] == listed[1:2]
        for wrong in ("/v1/corpora/none/documents", "/v1/corpora/shelf/documents"):
            assert (await client.get(wrong)).status_code == 404
        by_doc_id = await client.get(f"/v1/documents/{sent['doc_id']}", headers=key)
        assert (by_doc_id.status_code, "/v1/corpora/NAME/documents" in by_doc_id.text) == (404, True)
        film = next(one["doc_id"] for one in listed if one["doc_id"] != sent["doc_id"])
        stranger = bearer(await service.token_for("others", "ingest"))
        for who, where in ((None, address), (stranger, address), (key, f"{LIST}/{film}")):
            refused = await client.delete(where, headers=who)
            assert (refused.status_code, code_of(refused)) == (403, "forbidden")
        for removed in (True, False):
            gone = await client.delete(address, headers=key)
            assert gone.json() == {"doc_id": sent["doc_id"], "removed": removed}
        assert (await client.get(f"/v1/documents/{sent['id']}", headers=key)).json()["state"] == "deleted"
        assert not files_of(service)
        admin = bearer(await service.token_for("operator", "admin"))
        assert (await client.delete(f"{LIST}/{film}", headers=admin)).json()["removed"] is True
        last = (await client.get(LIST)).json()["documents"]
        refused = await client.delete(f"{LIST}/{last[0]['doc_id']}", headers=admin)
        assert (len(last), refused.status_code, code_of(refused)) == (1, 409, "last_document")


async def test_a_supplied_text_is_not_about_a_corpus_named_context(tmp_path: Path) -> None:
    async with serving(tmp_path):
        pass  # builds a corpus
    encoder = AsyncEncoder(HashEncoder())
    async with (
        open_retriever(settings_in(tmp_path), "films", encoder=encoder) as retriever,
        running(tmp_path, retrievers={**film_retrievers(), "context": retriever}) as service,
    ):
        other = bearer(await service.token_for("films alone", corpora=("films",)))
        for question in ("Which documents are there?", '@"x" Who was born in Oslo?'):
            asked = {**CONTEXT, "context": "The heron sleeps.", "question": question}
            told = await service.client.post("/v1/ask", json=asked, headers=other)
            assert told.status_code == 200, told.text
            assert "Birth" not in told.text


async def test_a_question_can_name_its_documents(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, _):

        async def searched(question: str, **fields: Any) -> tuple[str, set[str]]:
            """The question that the model was asked, and the documents of the passages found."""
            told = await service.ask(question=question, **fields)
            assert told.status_code == 200, told.text
            record = (await service.client.get(f"/v1/queries/{told.json()['query_id']}")).json()["record"]
            assert record["question"] == question
            return record["queries"][0], {one["doc_id"] for one in record["passages"]}

        assert await searched(QUESTION) == (QUESTION, {"film", "birth"})
        assert await searched(f"@birth {QUESTION}") == (QUESTION, {"birth"})
        assert await searched(f'@"Birth" {QUESTION}', options={"documents": ["film", "birth"]}) == (QUESTION, {"birth"})
        assert await searched(QUESTION, options={"documents": ["film"]}) == (QUESTION, {"film"})
        for question, options, words in (
            ("@brith Who?", {}, "No document is named 'brith'; did you mean 'Birth'?"),
            ('@"Moon" Who?', {}, "No document is named 'Moon'; choose from: Birth, Film."),
            ("@birth Who?", {"documents": ["film"]}, "No document is named 'birth'; choose from: Film"),
            ("@birth", {}, "write a question"),
            ("@", {}, "Write a document's name after @"),
        ):
            refused = await service.ask(question=question, options=options)
            assert (refused.status_code, words in refused.text) == (422, True), refused.text
        for question, status in ((f"@birth {QUESTION}", 200), (f"@brith {QUESTION}", 400)):
            chat = {"model": "films", "messages": [{"role": "user", "content": question}]}
            told = await service.client.post("/v1/chat/completions", json=chat)
            assert told.status_code == status, told.text
        prompt = service.model.asked("write")[-1].messages[-1].content
        assert (BIRTH_SENTENCE in prompt, FILM_SENTENCE in prompt, "@birth" in prompt) == (True, False, False)
