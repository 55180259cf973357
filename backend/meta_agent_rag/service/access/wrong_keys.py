"""Counts wrong keys by client address, so that keys cannot be guessed quickly."""

import hashlib
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import RequestError
from ..request_record import Client
from .keys import Keys

_MOST_KNOWN = 10_000
_NETWORK_BITS = 64
"""IPv6 prefix length: the holder of one address controls all addresses with the same prefix."""


@dataclass(kw_only=True)
class WrongKeys:
    """The recent number of wrong keys per address; it decreases by `per_minute` every minute.

    A token that proved valid is still served, whatever else comes from its address. Kept in memory, per process.
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    _wrong: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict, repr=False)
    _right: OrderedDict[bytes, None] = field(default_factory=OrderedDict, repr=False)

    async def client(self, keys: Keys, token: str, peer: str) -> Client:
        """The client with this token. Raises the errors of `Keys.client`; `RequestError` (429) for many wrong keys."""
        proof, place = hashlib.sha256(token.encode("utf-8", "replace")).digest(), _place(peer)
        if proof not in self._right:
            self._require_patience(place)
        try:
            client = await keys.client(token)
        except RequestError as error:
            if error.status == 401:
                self._right.pop(proof, None)
                _bound(self._wrong, self._noted(place))
            raise
        self._right[proof] = None
        _bound(self._right, proof)
        return client

    def _require_patience(self, place: str) -> None:
        surplus = self._level(place) + 1 - self.per_minute
        if surplus > 0:
            wait = math.ceil(60 * surplus / self.per_minute)
            words = f"This address sent too many wrong keys; wait {wait} s."
            raise RequestError(429, "too_many_wrong_keys", words, retry_after=wait)

    def _noted(self, place: str) -> str:
        self._wrong[place] = (self._level(place) + 1, self.clock())
        return place

    def _level(self, place: str) -> float:
        level, at = self._wrong.get(place, (0.0, 0.0))
        return max(0.0, level - (self.clock() - at) * self.per_minute / 60)


def _bound(kept: "OrderedDict[str, tuple[float, float]] | OrderedDict[bytes, None]", latest: str | bytes) -> None:
    kept.move_to_end(latest)  # type: ignore[arg-type]  # the key that was just set
    if len(kept) > _MOST_KNOWN:
        kept.popitem(last=False)


def _place(peer: str) -> str:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if address.version == 4:
        return peer
    if address.ipv4_mapped is not None:  # a dual-stack socket shows IPv4 addresses in this form
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
