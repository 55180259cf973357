"""JSON over HTTP to an OpenAI-compatible endpoint, through aiohttp.

An SDK's own request and response objects take several times as long as aiohttp needs for a call, and its retries
would repeat calls that may have been billed.
"""

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

from ...errors import SettingsError

if TYPE_CHECKING:
    import aiohttp

_KEEP_ALIVE_SECONDS = 5.0
_SHORTEST_SECRET = 6
"""The fewest characters of a header's value that is masked in errors: shorter ones, such as "1", are parts of words."""
_DRAIN_SECONDS = 0.2
"""The time for the rest of a stream that is complete, so that its connection can serve another call."""


class HttpError(Exception):
    """A call without a usable reply; `faults.translated` turns it into a `ModelError` with the remedy.

    `status` is that of the response, `None` if there was none or its stream reported the error. `sent` tells whether
    the call may have reached the server. `broken` is a reply that cannot be read or, of a call that was not sent, a
    fault that trying again does not mend. `body` is the reported error.
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

    There is no time limit either: the caller sets one for the whole call. Redirects are not followed, since they would
    take the prompt and the headers to another host, and repeat a call that may have been billed.
    """

    def __init__(self, base_url: str, *, api_key: SecretStr | None, headers: Mapping[str, SecretStr]) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._headers = headers
        self._opening = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

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
        import aiohttp

        async with self._requested("POST", path, body) as response:
            yield response
            with suppress(TimeoutError, aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    async for _ in response.content.iter_any():
                        pass

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def _requested(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> "AsyncIterator[aiohttp.ClientResponse]":
        session = await self._opened()
        import aiohttp

        unreadable = (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError, ValueError, RecursionError)
        try:
            async with await self._begun(session, method, path, body) as response:
                if response.status // 100 != 2:
                    raise await self._refused(response)
                yield response
        except HttpError as error:
            error.words = self._shown(error.words)
            raise
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            garbled = isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError)
            raise HttpError(self._shown(error), broken=garbled) from error
        except unreadable as error:
            raise HttpError(self._shown(error), broken=True) from error

    async def _begun(
        self, session: "aiohttp.ClientSession", method: str, path: str, body: Mapping[str, Any] | None
    ) -> "aiohttp.ClientResponse":
        """The response to a request. Raises an `HttpError` if the request cannot have reached the server."""
        import aiohttp

        try:
            data = None if body is None else _encoded(body)
            # headers per request: a proxy would be sent those of the session
            return await session.request(
                method, self._base_url + path, data=data, headers=self._sent, allow_redirects=False
            )
        except aiohttp.ClientHttpProxyError as error:
            words = f"the proxy refused the connection ({error.status})"
            raise HttpError(words, sent=False, broken=True) from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            words = f"no secure connection: {self._shown(error)}"
            raise HttpError(words, sent=False, broken=True) from error
        except aiohttp.ClientConnectorError as error:
            raise HttpError(self._shown(error), sent=False) from error
        except (ValueError, TypeError) as error:
            raise HttpError(self._shown(error), sent=False, broken=True) from error

    @cached_property
    def _sent(self) -> dict[str, str]:
        """The headers of a request; those of the settings come last."""
        headers = {"content-type": "application/json", "user-agent": f"meta-agent-rag/{version('meta-agent-rag')}"}
        if self._api_key is not None:
            headers["authorization"] = f"Bearer {self._api_key.get_secret_value()}"
        return {**headers, **{name.lower(): value.get_secret_value() for name, value in self._headers.items()}}

    def _shown(self, words: object) -> str:
        """Words of a server or a library in one line, without the secrets that were sent."""
        text = " ".join(str(words).split())
        for secret in (self._api_key, *self._headers.values()):
            if secret is not None and len(value := secret.get_secret_value().strip()) >= _SHORTEST_SECRET:
                text = text.replace(value, "***")
        return text[:300]

    async def _refused(self, response: "aiohttp.ClientResponse") -> HttpError:
        """A response that is not a success, whose status counts even if its body cannot be read."""
        import aiohttp

        text = ""
        with suppress(aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError, LookupError):
            text = await response.text(errors="replace")
        try:
            whole: object = json.loads(text)
        except (ValueError, RecursionError):
            whole = None
        error = whole.get("error", whole) if isinstance(whole, Mapping) else whole
        body = error if isinstance(error, Mapping) else {}
        said = error if isinstance(error, str) else body.get("message")
        if 300 <= response.status < 400:
            host = urlsplit(response.headers.get("location", "")).hostname
            said = f"it redirects to {host or 'another address'}, which is not followed; set the address itself"
        words = " ".join(str(said or text).split()) or "no reason given"
        return HttpError(words, status=response.status, headers=response.headers, body=body)

    async def _opened(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if self._session is not None and self._loop is loop:
            return self._session
        async with self._opening:  # only once, even for concurrent first calls
            if self._session is None or self._loop is not loop:
                try:
                    security = await asyncio.to_thread(_security, self._base_url)
                except OSError as error:
                    raise SettingsError(
                        f"The certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({error}); correct the path."
                    ) from None
                if self._session is not None:
                    self._session.detach()  # it cannot be closed in another loop than its own
                self._session, self._loop = _session(security, _proxy(self._base_url)), loop
            return self._session


async def read(response: "aiohttp.ClientResponse") -> object:
    """The body of a reply: parsed JSON, or the text of another content type."""
    raw = await response.read()
    try:
        return json.loads(raw)
    except ValueError:
        if "json" in response.content_type:
            raise
        return raw.decode("utf-8", "replace")


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _session(security: ssl.SSLContext | bool, proxy: str | None) -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=security),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    )


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
    """The proxy that the environment sets for an address; looked up once, since aiohttp would do so at every call.

    Raises `SettingsError` for one that does not speak HTTP.
    """
    address = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy is None or _is_direct(address.netloc, address.hostname or "", proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if (scheme := urlsplit(proxy).scheme) not in ("http", "https"):
        raise SettingsError(f"A proxy of type {scheme!r} is not supported; set HTTPS_PROXY to one with http://.")
    return proxy


def _is_direct(netloc: str, host: str, exempt: str) -> bool:
    """Does the environment exempt a host from the proxy: by name, with its port, or by network?"""
    if proxy_bypass(host) or proxy_bypass(netloc):
        return True
    for network in exempt.split(","):
        with suppress(ValueError):  # a name, or no address
            if ipaddress.ip_address(host) in ipaddress.ip_network(network.strip(), strict=False):
                return True
    return False
