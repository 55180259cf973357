"""A server that speaks the part of Qdrant's REST API that the store uses, over Qdrant's own embedded engine.

    python -m tests.qdrant_server PORT FOLDER

It tests the store over the wire with the real client and engine, but without graphs, quantisation or gRPC. Unknown
requests get a 404, so that any new one fails a test.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import qdrant_edge as edge
from aiohttp import web

_MOST_BYTES = 64 * 1024 * 1024
_NOTE = "collection.json"

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One shard, and the note its creator gave."""

    folder: Path
    note: Body
    shard: edge.EdgeShard

    @classmethod
    def create(cls, folder: Path, note: Body) -> "Collection":
        (folder / "shard").mkdir(parents=True)
        (folder / _NOTE).write_text(json.dumps(note), encoding="utf-8")
        vectors = {
            name: edge.EdgeVectorParams(size=given["size"], distance=edge.Distance.Cosine)
            for name, given in note["vectors"].items()
        }
        shard = edge.EdgeShard.load(str(folder / "shard"), edge.EdgeConfig(vectors=vectors))
        return cls(folder=folder, note=note, shard=shard)

    def info(self) -> Body:
        """The fields that `get_collection` requires; only the vectors and metadata are used."""
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": self.shard.count(edge.CountRequest(exact=True)),
            "payload_schema": {},
            "config": {
                "params": {"vectors": self.note["vectors"]},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
                "metadata": self.note.get("metadata"),
            },
        }

    def index(self, asked: Body) -> Body:
        kinds = {"keyword": edge.PayloadSchemaType.Keyword, "integer": edge.PayloadSchemaType.Integer}
        kind = kinds[asked["field_schema"]]
        return self._changed(edge.UpdateOperation.create_field_index(asked["field_name"], kind))

    def upsert(self, asked: Body) -> Body:
        points = [edge.Point(_id(one["id"]), one["vector"], one.get("payload")) for one in asked["points"]]
        return self._changed(edge.UpdateOperation.upsert_points(points))

    def set_payload(self, asked: Body) -> Body:
        return self._changed(
            edge.UpdateOperation.set_payload_by_filter(_filter(asked["filter"]), dict(asked["payload"]))
        )

    def delete_payload(self, asked: Body) -> Body:
        return self._changed(edge.UpdateOperation.delete_payload_by_filter(_filter(asked["filter"]), asked["keys"]))

    def delete(self, asked: Body) -> Body:
        return self._changed(edge.UpdateOperation.delete_points_by_filter(_filter(asked["filter"])))

    def retrieve(self, asked: Body) -> list[Body]:
        return [_record(one) for one in self.shard.retrieve([_id(one) for one in asked["ids"]], True, False)]

    def scroll(self, asked: Body) -> Body:
        offset = asked.get("offset")
        page = edge.ScrollRequest(
            None if offset is None else _id(offset),
            asked.get("limit", 10),
            _filter(asked.get("filter")),
            with_payload=True,
            with_vector=False,
        )
        records, following = self.shard.scroll(page)
        return {"points": [_record(one) for one in records], "next_page_offset": _written(following)}

    def query(self, asked: Body) -> Body:
        found = self.shard.query(
            edge.QueryRequest(
                asked["limit"],
                query=edge.Query.Nearest(asked["query"]["nearest"], asked["using"]),
                filter=_filter(asked.get("filter")),
                with_payload=True,
            )
        )
        return {"points": [{**_record(one), "version": 0, "score": one.score} for one in found]}

    def _changed(self, operation: edge.UpdateOperation) -> Body:
        self.shard.update(operation)
        return {"operation_id": 0, "status": "completed"}


Request: TypeAlias = Callable[[Collection, Body], Any]

REQUESTS: Mapping[tuple[str, str], Request] = {
    ("GET", ""): lambda collection, _: collection.info(),
    ("PUT", "index"): Collection.index,
    ("PUT", "points"): Collection.upsert,
    ("POST", "points"): Collection.retrieve,
    ("POST", "points/payload"): Collection.set_payload,
    ("POST", "points/payload/delete"): Collection.delete_payload,
    ("POST", "points/delete"): Collection.delete,
    ("POST", "points/scroll"): Collection.scroll,
    ("POST", "points/query"): Collection.query,
}


@dataclass(frozen=True, kw_only=True)
class Server:
    """All collections; handles one request at a time."""

    folder: Path
    collections: dict[str, Collection] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, request: web.Request) -> web.Response:
        name, what = request.match_info["name"], request.match_info.get("what", "")
        body = await request.json() if request.can_read_body else {}
        async with self.lock:
            return await asyncio.to_thread(self._answer, request.method, name, what, body)

    async def list(self, _: web.Request) -> web.Response:
        return _reply({"collections": [{"name": name} for name in self.collections]})

    def _answer(self, method: str, name: str, what: str, body: Body) -> web.Response:
        known = self.collections.get(name)
        if (method, what) == ("GET", "exists"):
            return _reply({"exists": known is not None})
        if (method, what) == ("PUT", ""):
            if known is not None:
                return _refusal(409, f"Collection `{name}` already exists!")
            self.collections[name] = Collection.create(self.folder / uuid4().hex, body)
            return _reply(True)
        if known is None:
            return _refusal(404, f"Collection `{name}` doesn't exist!")
        if (method, what) == ("DELETE", ""):
            self.collections.pop(name).shard.close()
            shutil.rmtree(known.folder)
            return _reply(True)
        asked = REQUESTS.get((method, what))
        return _refusal(404, f"{method} {what!r} is not known here") if asked is None else _reply(asked(known, body))


def _reply(result: Any) -> web.Response:
    return web.json_response({"result": result, "status": "ok", "time": 0.0})


def _refusal(status: int, error: str) -> web.Response:
    return web.json_response({"status": {"error": error}, "time": 0.0}, status=status)


def _id(given: Any) -> Any:
    return UUID(given) if isinstance(given, str) else given


def _written(given: Any) -> Any:
    return str(given) if isinstance(given, UUID) else given


def _record(found: Any) -> Body:
    return {"id": _written(found.id), "payload": found.payload}


def _filter(given: Body | None) -> Any:
    if given is None:
        return None
    must, must_not = ([_condition(one) for one in given.get(kind) or ()] for kind in ("must", "must_not"))
    return edge.Filter(must=must or None, must_not=must_not or None)


def _condition(given: Body) -> Any:
    match = given["match"]
    matched = edge.MatchAny(match["any"]) if "any" in match else edge.MatchValue(match["value"])
    return edge.FieldCondition(given["key"], match=matched)


async def _version(_: web.Request) -> web.Response:
    return web.json_response({"title": "qdrant - vector search engine", "version": version("qdrant-client")})


async def _serve(port: int, folder: Path) -> None:
    app = web.Application(client_max_size=_MOST_BYTES)
    server = Server(folder=folder)
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = server.answer
    app.router.add_get("/", _version)
    app.router.add_get("/collections", server.list)
    app.router.add_route("*", "/collections/{name}", answer)
    app.router.add_route("*", "/collections/{name}/{what:.+}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
