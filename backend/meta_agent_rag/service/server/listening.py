"""The address that a server listens on."""

import socket

from ...errors import InputError


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address. Raises `InputError` where it cannot be had."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"Nobody can listen on {host!r}, port {port!r} ({error}); choose others.") from None
    return listener
