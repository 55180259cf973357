"""Files of a multipart body, streamed to disk: never held whole in memory, and within a time limit."""

import asyncio
import logging
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Receive

from ...errors import RequestError
from ...settings import Settings
from ...text.normalise import encodable
from .records import UploadFolder

_LOG = logging.getLogger(__name__)
FIELD = "files"
MOST_FILES = 20
_GRACE_SECONDS = 10.0
_LONGEST_HEADER = 4096
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class UploadLimits:
    """Bytes of a body and of one file, total seconds, and the minimum bytes per second after `grace` seconds."""

    body: int
    file: int
    seconds: float
    rate: float
    grace: float = _GRACE_SECONDS

    @classmethod
    def of(cls, settings: Settings) -> "UploadLimits":
        """The limits in the settings."""
        body = int(settings.service_upload_mb * _MEGABYTE)
        return cls(
            body=body,
            file=min(body, int(settings.ingest_file_mb * _MEGABYTE)),
            seconds=settings.service_upload_seconds,
            rate=settings.service_upload_kb_per_second * 1024,
        )


@asynccontextmanager
async def received(
    headers: Mapping[str, str], receive: Receive, folder: UploadFolder, limits: UploadLimits, suffixes: tuple[str, ...]
) -> AsyncIterator[list[Path]]:
    """The files of a body, each in its own folder in `folder`; files left there at the end are removed.

    Raises `RequestError`: 408 for a body that arrives too slowly, 413 for one that is too large, as soon as that is
    known, 415 if it is not an upload or has an unsupported format, 422 if it is malformed.
    """
    boundary = _boundary(headers)
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.body:
        raise _too_large(limits.body)
    files = _Files(folder=folder, limits=limits, suffixes=suffixes)
    parser = files.parser(boundary)
    try:
        async for part in _parts(receive, limits):
            await asyncio.to_thread(parser.write, part)
        files.require_whole()
        yield files.arrived
    except MultipartParseError:
        raise RequestError(422, "invalid_request", "The body is not multipart/form-data; send files as such.") from None
    except OSError as error:
        _LOG.error("An upload cannot be stored (%s).", error.strerror)
        raise RequestError(503, "unavailable", "Uploads cannot be stored at the moment; try again later.") from None
    finally:
        files.close()
        for file in files.arrived:
            shutil.rmtree(file.parent, ignore_errors=True)


async def _parts(receive: Receive, limits: UploadLimits) -> AsyncIterator[bytes]:
    """The body as it arrives, as long as it is fast enough."""
    began, size, more = time.monotonic(), 0, True
    while more:
        late = began + min(limits.seconds, limits.grace + size / limits.rate)
        try:
            async with asyncio.timeout(late - time.monotonic()):
                message = await receive()
        except TimeoutError:
            words = "The upload is too slow or takes too long; send less at once, or use a faster connection."
            raise RequestError(408, "upload_too_slow", words) from None
        if message["type"] == "http.disconnect":
            raise RequestError(499, "client_went", "The client disconnected before the end.")
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > limits.body:
            raise _too_large(limits.body)
        yield part


@dataclass(kw_only=True)
class _Files:
    """Handles the parser's events and writes the files; `arrived` are those received so far."""

    folder: UploadFolder
    limits: UploadLimits
    suffixes: tuple[str, ...]
    arrived: list[Path] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _size: int = 0
    _name: bytes = b""
    _value: bytes = b""
    _disposition: bytes = b""
    _whole: bool = False

    def parser(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_begin": self._header_begins,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._file_begins,
                "on_part_data": self._data,
                "on_part_end": self.close,
                "on_end": self._end,
            },
            max_header_size=_LONGEST_HEADER,
        )

    def require_whole(self) -> None:
        if not self._whole:
            raise RequestError(422, "invalid_request", "The body ends before its last boundary; send it whole.")
        if not self.arrived:
            raise RequestError(422, "invalid_request", f"No file was sent; send one or more as {FIELD!r}.")

    def close(self) -> None:
        """Close the file being written, if any."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _part_begins(self) -> None:
        self._disposition = b""

    def _header_begins(self) -> None:
        self._name = self._value = b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value

    def _file_begins(self) -> None:
        _, options = parse_options_header(self._disposition.decode("latin-1"))
        field_name, given = options.get(b"name", b""), options.get(b"filename")
        if field_name.decode("utf-8", "replace") != FIELD or given is None:
            raise RequestError(422, "invalid_request", f"A part is not a file named {FIELD!r}; send only files.")
        if len(self.arrived) >= MOST_FILES:
            raise RequestError(413, "too_large", f"There are more than {MOST_FILES} files; send fewer at once.")
        name = safe_name(given.decode("utf-8", "replace"))
        if "." in name and not name.lower().endswith(self.suffixes):
            kinds = ", ".join(self.suffixes)
            raise RequestError(415, "unsupported_type", f"{name!r} has an unsupported format; send {kinds}.")
        path = self.folder.start() / name
        self.arrived.append(path)
        self._file, self._size = path.open("wb"), 0

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._size > self.limits.file:
            raise _too_large(self.limits.file)
        if self._file is not None:
            self._file.write(memoryview(data)[start:end])

    def _end(self) -> None:
        self._whole = True


def _boundary(headers: Mapping[str, str]) -> bytes:
    kind, options = parse_options_header(headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        raise RequestError(415, "unsupported_type", "Uploads must be multipart/form-data.")
    boundary = options.get(b"boundary", b"")
    if not 0 < len(boundary) <= 200:
        raise RequestError(422, "invalid_request", "The content type names no boundary; send multipart/form-data.")
    return boundary


def _too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"The upload is larger than {most / _MEGABYTE:g} MB; send less.")


_LONGEST_BYTES = 120
_LONGEST_SUFFIX = 12
_WITHOUT_NAME = "document"


def safe_name(given: str) -> str:
    """The last part of a path, without characters that a file system, a header or a terminal could misinterpret.

    >>> safe_name("../../etc/passwd")
    'passwd'
    >>> safe_name("C:\\\\notes\\\\a\\r\\nb.txt")
    'a__b.txt'
    """
    last = re.split(r"[/\\]", given)[-1]
    writable = unicodedata.normalize("NFC", encodable(last))
    plain = "".join("_" if unicodedata.category(character)[0] == "C" else character for character in writable)
    name = re.sub(r'[<>:"|?*]', "_", plain).strip(" .")
    return _shortened(name) or _WITHOUT_NAME


def _shortened(name: str) -> str:
    if len(name.encode()) <= _LONGEST_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f".{suffix}" if dot and len(suffix) <= _LONGEST_SUFFIX else ""
    kept = (stem if ending else name).encode()[: _LONGEST_BYTES - len(ending.encode())]
    return kept.decode("utf-8", "ignore").strip(" .") + ending
