"""JSON over HTTP to an OpenAI-compatible endpoint, through aiohttp.

An SDK's own request and response objects take several times as long as aiohttp needs for a call, and its retries
would repeat calls that may have been billed.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

if TYPE_CHECKING:
    import aiohttp

_KEEP_ALIVE_SECONDS = 5.0
_LONGEST_LINE = 2**20
"""Of a stream, in bytes; aiohttp's own default is shorter than a chunk with many log-probabilities."""


class HttpError(Exception):
    """A call without a usable reply; `faults.translated` turns it into a `ModelError` with the remedy.

    `status` is that of the response, `None` if there was none or its stream reported the error. `sent` tells whether
    the call may have reached the server, `broken` whether its reply cannot be read. `body` is the reported error.
    """

    def __init__(
        self,
        words: str,
        *,
        status: int | None = None,
        sent: bool = True,
        broken: bool = False,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(words)
        self.words = words
        self.status = status
        self.sent = sent
        self.broken = broken
        self.headers = headers or {}
        self.body = body or {}


class HttpClient:
    """The connections to one endpoint: opened at the first call, kept for the next ones, without a limit.

    There is no time limit either: the caller sets one for the whole call.
    """

    def __init__(self, base_url: str, *, api_key: SecretStr | None, headers: Mapping[str, SecretStr]) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._headers = headers
        self._opening = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str) -> object:
        """The body of a reply, parsed. Raises an `HttpError`."""
        async with self._requested("GET", path) as response:
            return await read(response)

    async def post(self, path: str, body: Mapping[str, Any]) -> object:
        """The body of the reply to a JSON body, parsed. Raises an `HttpError`."""
        async with self._requested("POST", path, body) as response:
            return await read(response)

    @asynccontextmanager
    async def streamed(self, path: str, body: Mapping[str, Any]) -> "AsyncIterator[aiohttp.ClientResponse]":
        """A reply that is still arriving. Raises an `HttpError`, also for faults while it is read."""
        async with self._requested("POST", path, body) as response:
            yield response

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def _requested(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> "AsyncIterator[aiohttp.ClientResponse]":
        session = self._session or await self._opened()
        import aiohttp

        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with session.request(method, self._base_url + path, data=data) as response:
                if not response.ok:
                    raise _refused(response, await response.text(errors="replace"))
                yield response
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ClientHttpProxyError) as error:
            raise HttpError(_one_line(str(error)), sent=False) from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            garbled = isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError)
            raise HttpError(_one_line(str(error)), broken=garbled) from error
        except (aiohttp.ClientError, ValueError, RecursionError) as error:
            raise HttpError(_one_line(str(error)), broken=True) from error

    async def _opened(self) -> "aiohttp.ClientSession":
        async with self._opening:  # only once, even for concurrent first calls
            if self._session is None:
                context = await asyncio.to_thread(_security, self._base_url)
                self._session = self._made(context)
            return self._session

    def _made(self, security: ssl.SSLContext | bool) -> "aiohttp.ClientSession":
        import aiohttp
        from multidict import CIMultiDict

        headers = CIMultiDict({"Content-Type": "application/json", "User-Agent": f"meta-agent-rag/{_version()}"})
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key.get_secret_value()}"
        headers.update({name: value.get_secret_value() for name, value in self._headers.items()})
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=security),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=_proxy(self._base_url),
            read_bufsize=_LONGEST_LINE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )


async def read(response: "aiohttp.ClientResponse") -> object:
    """The body of a reply: parsed JSON, or the text of another content type."""
    raw = await response.read()
    try:
        return json.loads(raw)
    except ValueError:
        if "json" in response.content_type:
            raise
        return raw.decode("utf-8", "replace")


def _refused(response: "aiohttp.ClientResponse", text: str) -> HttpError:
    try:
        whole: object = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    error = whole.get("error", whole) if isinstance(whole, Mapping) else whole
    body = error if isinstance(error, Mapping) else {}
    said = error if isinstance(error, str) else body.get("message")
    words = _one_line(str(said or text)) or "no reason given"
    return HttpError(words, status=response.status, headers=response.headers, body=body)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _security(base_url: str) -> ssl.SSLContext | bool:
    """The certificates to check a server against: the system's, or those of SSL_CERT_FILE or SSL_CERT_DIR.

    Called in a thread, since it also imports aiohttp.
    """
    import aiohttp  # noqa: F401

    if not base_url.startswith("https:"):
        return True
    from httpx2 import create_ssl_context  # finds the certificates of every platform

    return create_ssl_context()


def _proxy(base_url: str) -> str | None:
    """The proxy that the environment sets for an address; looked up once, since aiohttp would do so at every call."""
    address = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return None if proxy is None or proxy_bypass(address.hostname or "") else proxy


def _version() -> str:
    return version("meta-agent-rag")
