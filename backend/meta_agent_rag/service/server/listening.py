"""The address that a server listens on."""

import errno
import socket

from ...errors import InputError


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address. Raises `InputError` if it is not available."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise InputError(f"Port {port} on {host!r} is in use; choose another, or 0 for any free one.") from None
        raise InputError(f"Cannot listen on {host!r}, port {port!r} ({error}); choose another host or port.") from None
    return listener
