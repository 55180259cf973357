"""A visitor's own model: an OpenAI-compatible endpoint, called with a key that is held in memory until they leave."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from ..errors import InputError
from ..settings import ModelRoles, Settings

if TYPE_CHECKING:
    from ..llm.compatible import CompatibleChat

_TRANSLATED = IPv6Network("64:ff9b::/96")
_LONGEST_REPLY = 32 * 1024 * 1024
"""Bytes; the longest reply with probabilities has fewer."""


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """An address, a model there, and the visitor's key."""

    base_url: str
    model: str
    key: SecretStr

    async def check(self, allowed: str) -> None:
        """Raise `InputError` unless the address may be called, by DEMO_OWN_MODELS."""
        try:
            parts = urlsplit(self.base_url)
            host, port = parts.hostname or "", parts.port
            host.encode("idna")
        except ValueError:  # also of a name that DNS cannot have
            host, port, parts = "", None, urlsplit("")
        schemes = ("https", "http") if allowed == "any" else ("https",)
        is_url = parts.scheme in schemes and host and self.base_url.isprintable() and " " not in self.base_url
        if not is_url or not self.model.strip():
            raise InputError("Give an address that begins with https:// and the name of a model there.")
        if allowed != "any":
            await public_address(host, port or 443)

    def settings(self, settings: Settings) -> Settings:
        """The demo's settings without what belongs to its operator's models, and without a cache on disk."""
        return settings.model_copy(
            update={"model_roles": ModelRoles(), "response_cache": False, "cost_limit_usd": None}
        )

    @asynccontextmanager
    async def opened(self, allowed: str) -> "AsyncIterator[CompatibleChat]":
        """The chat model, closed at the end."""
        import httpx2

        from ..llm.compatible import BoundedStream, CompatibleChat, PlainTransport

        class VisitorsTransport(PlainTransport):
            """Connects to the address that was checked, so that neither a redirect nor a new name record leads on.

            A reply is sent unpacked, and ends the call where it is longer than any model's.
            """

            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                if allowed != "any":
                    host = request.url.host
                    address = await public_address(host, request.url.port or 443)
                    request.extensions = {**request.extensions, "sni_hostname": host}
                    request.url = request.url.copy_with(host=address)
                request.headers["accept-encoding"] = "identity"
                response = await super().handle_async_request(request)
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise httpx2.RemoteProtocolError("The reply is packed, although it was asked for unpacked.")
                response.stream = BoundedStream(response.stream, _LONGEST_REPLY)
                return response

        transport = VisitorsTransport()
        async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=180) as client:
            yield CompatibleChat(
                model=self.model.strip(),
                base_url=self.base_url.strip(),
                api_key=SecretStr(self.key.get_secret_value().strip() or "none"),
                http_async_client=client,
                http_socket_options=(),
                max_retries=0,
                use_responses_api=False,
                openai_proxy=None,
            )


async def public_address(host: str, port: int) -> str:
    """The address of a host; raises `InputError` unless all its addresses belong to the public internet."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise InputError("The name of that server is not known; check the address.") from None
    addresses = [ip_address(str(one[4][0]).partition("%")[0]) for one in found]
    if not all(one.is_global and not one.is_multicast for one in map(_reached, addresses)):
        raise InputError("That address is in a private network; this demo calls servers of the public internet alone.")
    return str(addresses[0])


def _reached(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that one of IPv6 leads to, if any."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED or not int(address) >> 32:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
