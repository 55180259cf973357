"""A server that speaks the part of Qdrant's REST API that the store uses, over the local mode of Qdrant's client.

    python -m tests.qdrant_server PORT

It tests the store over the wire, but without graphs, quantisation or gRPC. Unknown requests get a 404, so that any new
one fails a test.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeAlias

from aiohttp import web
from qdrant_client import QdrantClient, models

_MOST_BYTES = 64 * 1024 * 1024
_DONE = {"operation_id": 0, "status": "completed"}
Body: TypeAlias = Mapping[str, Any]


def _create(client: QdrantClient, name: str, body: Body) -> Any:
    given = models.CreateCollection(**body)
    return client.create_collection(name, vectors_config=given.vectors, metadata=given.metadata)


def _upsert(client: QdrantClient, name: str, body: Body) -> Any:
    client.upsert(name, models.PointsList(**body).points)
    return _DONE


def _delete(client: QdrantClient, name: str, body: Body) -> Any:
    client.delete(name, models.PointIdsList(**body))
    return _DONE


def _query(client: QdrantClient, name: str, body: Body) -> Any:
    asked = models.QueryRequest(**body)
    assert isinstance(asked.query, models.NearestQuery)
    nearest: Any = asked.query.nearest
    found = client.query_points(
        name, nearest, using=asked.using, query_filter=asked.filter, limit=asked.limit or 10, with_payload=False
    )
    return {"points": [point.model_dump(mode="json") for point in found.points]}


REQUESTS: Mapping[tuple[str, str], Callable[[QdrantClient, str, Body], Any]] = {
    ("GET", "exists"): lambda client, name, _: {"exists": client.collection_exists(name)},
    ("GET", ""): lambda client, name, _: client.get_collection(name).model_dump(mode="json"),
    ("PUT", ""): _create,
    ("DELETE", ""): lambda client, name, _: client.delete_collection(name),
    ("PUT", "points"): _upsert,
    ("POST", "points/delete"): _delete,
    ("POST", "points/query"): _query,
}


async def _serve(port: int) -> None:
    client, lock = QdrantClient(":memory:"), asyncio.Lock()

    async def answer(request: web.Request) -> web.Response:
        name, what = request.match_info["name"], request.match_info.get("what", "")
        asked = REQUESTS.get((request.method, what))
        if asked is None:
            return _refusal(404, f"{request.method} {what!r} is not known here")
        if what != "exists" and (request.method, what) != ("PUT", "") and not client.collection_exists(name):
            return _refusal(404, f"Collection `{name}` doesn't exist!")
        body = await request.json() if request.can_read_body else {}
        async with lock:
            result = await asyncio.to_thread(asked, client, name, body)
        return web.json_response({"result": result, "status": "ok", "time": 0.0})

    async def about(_: web.Request) -> web.Response:
        return web.json_response({"title": "qdrant - vector search engine", "version": version("qdrant-client")})

    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_get("/", about)
    app.router.add_route("*", "/collections/{name}", answer)
    app.router.add_route("*", "/collections/{name}/{what:.+}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def _refusal(status: int, error: str) -> web.Response:
    return web.json_response({"status": {"error": error}, "time": 0.0}, status=status)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
