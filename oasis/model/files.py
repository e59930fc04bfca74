"""Writing files: a regular file appears whole or not at all; devices and pipes are written to."""

from __future__ import annotations

import errno
import json
import os
import stat
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from oasis.extras import require
from oasis.model.errors import InputError

_unfinished: set[Path] = set()  # temporary files that exist or are about to be made


def write_bytes(path: str | os.PathLike[str], content: bytes, *, durable: bool = False) -> None:
    """Replace a regular file in one step, or write to a device, a pipe or standard output.

    A regular file keeps its mode, and a link to it stays one. A `durable` one is on the disk when
    this returns.
    """
    with naming(path):
        target, status = _destination(path)
        if _is_renamed_over(target, status):
            _replace(target, content, status, durable)
            return
        # Opening standard output again would truncate it, and what was printed before be lost.
        own = _standard_descriptor(os.stat(path))
        # without O_CREAT: a pipe that has gone away does not become a file
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC) if own is None else own
        with open(descriptor, "wb", closefd=own is None) as stream:
            stream.write(content)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` that `write_bytes` would raise, where that shows without writing."""
    with naming(path):
        target, status = _destination(path)
        if _is_renamed_over(target, status):
            with _temporary_beside(target) as temporary, open(temporary, "xb"):
                pass
        elif not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Return whether `path`, such as ``/dev/stdout``, is the file open as standard output."""
    try:
        return _standard_descriptor(os.stat(path)) == 1
    except OSError:
        return False


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make every `OSError` of the block name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def remove_unfinished() -> None:
    """Remove the temporary files of this process, for an exit that runs no ``finally``."""
    for temporary in list(_unfinished):
        temporary.unlink(missing_ok=True)


def json_text(document: Any) -> str:
    """Return plain data as JSON text, indented, with a line break at the end."""
    chunks = json.JSONEncoder(indent=1, allow_nan=False).iterencode(document)
    # Joined some at a time: all chunks at once would take ten times the memory of the text.
    return "".join(iter(lambda: "".join(islice(chunks, 10_000)), "")) + "\n"


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, in the way of `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def save_state(
    path: str | os.PathLike[str], kind: str, state: Any, *, durable: bool = False
) -> None:
    """Write plain data as a file of this `kind`, with a checksum; `saved_state` reads it."""
    content = encoded({"kind": kind, "state": state}, allow_nan=True)
    write_bytes(path, content, durable=durable)


def saved_state(path: str | os.PathLike[str], kind: str) -> Any:
    """Read what `save_state` wrote; `InputError` if `path` is no whole file of that `kind`."""
    document = decoded(Path(path).read_bytes())
    if document is None or not {"kind", "state"} <= document.keys():
        raise InputError(os.fspath(path), f"expected {kind!r}, got another file or a damaged one")
    if document["kind"] != kind:
        raise InputError(os.fspath(path), f"expected {kind!r}", document["kind"])
    return document["state"]


_HEAD, _MIDDLE, _TAIL = b'{"crc":"', b'","entry":', b"}\n"
_BODY = len(_HEAD) + 8 + len(_MIDDLE)


def encoded(entry: Any, *, allow_nan: bool = False) -> bytes:
    """Return a line of JSON with `entry` and the CRC-32 of its text, which `decoded` checks."""
    # The checksum is of these very bytes: JSON written again could be spaced or ordered otherwise.
    body = json.dumps(entry, separators=(",", ":"), allow_nan=allow_nan).encode("ascii")
    return _framed(checksum(body).encode("ascii"), body)


def checksum(content: bytes) -> str:
    """Return the CRC-32 of `content` as eight hexadecimal digits."""
    return f"{zlib.crc32(content):08x}"


def decoded(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line of `encoded`; None if the line is damaged."""
    crc, body = line[len(_HEAD) : len(_HEAD) + 8], line[_BODY : -len(_TAIL)]
    # Byte by byte, so that a line without its end is not taken for a whole one.
    if line != _framed(crc, body) or checksum(body).encode("ascii") != crc:
        return None
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):  # no JSON, though it was summed up
        return None
    return entry if isinstance(entry, dict) else None


def is_torn(line: bytes) -> bool:
    """Whether `line` could be the beginning of a line of `encoded`, but not the whole."""
    framed = _framed(line[len(_HEAD) : len(_HEAD) + 8], line[_BODY:])
    if line.endswith(b"\n") or not line.isascii() or not framed.startswith(line):
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(line[_BODY:].decode("ascii"))
    except ValueError:  # the entry itself does not end
        return True
    # Behind a whole entry only the rest of its own line may be missing.
    whole, after = line[: _BODY + end] + _TAIL, line[_BODY + end :]
    return decoded(whole) is not None and _TAIL.startswith(after)


def _framed(crc: bytes, body: bytes) -> bytes:
    return _HEAD + crc + _MIDDLE + body + _TAIL


def _destination(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """Return the file that `path` leads to and its status, None if it does not exist yet."""
    target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"{target.parent}: No such directory") from None
        return target, None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.ENXIO, "Is a socket")
    return target, status


def _is_renamed_over(target: Path, status: os.stat_result | None) -> bool:
    """Return whether a new file replaces this one; `OSError` if it is write-protected."""
    if status is None:
        return True
    if not stat.S_ISREG(status.st_mode) or _standard_descriptor(status) is not None:
        return False
    if not (target.exists() and os.path.samestat(target.stat(), status)):
        return False  # an open file that was deleted, reached through a link in /proc/self/fd
    os.close(os.open(target, os.O_WRONLY))  # a write-protected file is not replaced either
    return True


def _standard_descriptor(status: os.stat_result) -> int | None:
    """Return 1 or 2 if the status is that of standard output or standard error; else None."""
    for descriptor in (1, 2):
        try:
            opened = os.fstat(descriptor)
        except OSError:  # closed
            continue
        if os.path.samestat(opened, status):
            return descriptor
    return None


def _replace(target: Path, content: bytes, status: os.stat_result | None, durable: bool) -> None:
    with _temporary_beside(target) as temporary:
        with open(temporary, "xb") as stream:
            if status is not None:
                # The mode is set before anything is written:
                # the content of a private file is never public.
                os.chmod(temporary, stat.S_IMODE(status.st_mode))
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        # The rename comes last and is one step: a reader finds the old file or the new one, whole.
        os.replace(temporary, target)
        if durable:
            # Without this a power cut may forget the rename, though the content is on the disk.
            directory = os.open(target.resolve().parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    """Give a name for a temporary file beside `target`; afterwards delete that file, if any."""
    # In the same directory, because a rename between file systems is a copy. 32 characters of the
    # name leave room below the 255 that file systems allow.
    temporary = target.with_name(f".{target.name[:32]}.{uuid.uuid4().hex}.part")
    # Noted before the file exists, so that no exit can come between.
    _unfinished.add(temporary)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def frame(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Any:
    """Return a pandas data frame of `rows`; `columns` maps the names of columns to types."""
    require("a data frame", "pandas")
    pandas = import_module("pandas")  # by name: this package itself needs NumPy alone
    return pandas.DataFrame(list(rows), columns=list(columns)).astype(dict(columns))
