"""Recognition of files by content, and the command that reads each kind."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import sys
import tomllib
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

from oasis.model.errors import InstanceError
from oasis.model.extras import EXTRAS, install_line

STANDARD_INPUT = "-"
PARQUET = "a Parquet file"
MAGIC = b"PAR1"  # with which it begins
CONTROL = (*range(7), *range(14, 27), *range(28, 32))  # codes that text has no use for
SAMPLE = 8192  # bytes that are looked at
_standard_input: WeakKeyDictionary[object, bytes] = WeakKeyDictionary()


def read_content(path: str | os.PathLike[str], *, also: Collection[str] = ()) -> bytes:
    """Read a file of text; decompress what gzip, bzip2, xz or zstd wrote.

    Standard input is read once; later calls return the same bytes.
    """
    content = _standard_bytes() if str(path) == STANDARD_INPUT else Path(path).read_bytes()
    content = decompressed(content)
    if binary_kind(content) not in also:
        refuse_binary(content)
    return content


def _standard_bytes() -> bytes:
    stream = sys.stdin
    if stream is None:
        raise InstanceError("", "standard input is closed")
    # A pipe can be read once, and both the guess of the kind and the reader want its content.
    if stream not in _standard_input:
        _standard_input[stream] = stream.buffer.read()
    return _standard_input[stream]


def decompressed(content: bytes) -> bytes:
    """`content`, decompressed if its first bytes are those of a compressed file."""
    for begin, (name, decompress) in COMPRESSIONS.items():
        if re.match(begin, content):
            try:
                return decompress(content)
            except InstanceError:
                raise
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                expected = f"expected a whole {name} file, got a damaged or incomplete one"
                raise InstanceError("", f"{expected} ({error})") from None
    return content


def _zstd(content: bytes) -> bytes:
    """Decompress with Python's own module (from 3.14 on), or with the package ``zstandard``."""
    try:
        standard = import_module("compression.zstd")
    except ModuleNotFoundError:
        pass
    else:
        try:
            return bytes(standard.decompress(content))
        except standard.ZstdError as error:
            raise ValueError(str(error)) from None
    try:
        package = import_module("zstandard")
    except ModuleNotFoundError:
        line = install_line(EXTRAS["zstandard"])
        raise InstanceError("", f"is compressed with zstd, which needs zstandard: {line}") from None
    decompressed = bytearray()
    try:
        # zstd files may hold several frames, one after the other, as gzip files do.
        while content:
            stream = package.ZstdDecompressor().decompressobj()
            decompressed += stream.decompress(content)
            if not stream.eof:
                raise EOFError("it ends too early")
            content = stream.unused_data
    except package.ZstdError as error:
        raise ValueError(str(error)) from None
    return bytes(decompressed)


COMPRESSIONS: Mapping[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    rb"\x1f\x8b": ("gzip", gzip.decompress),
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": ("bzip2", bz2.decompress),
    rb"\xfd7zXZ\0": ("xz", lzma.decompress),
    rb"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}  # how a file begins -> what compressed it


def binary_kind(content: bytes) -> str | None:
    """`PARQUET` for a file that begins as one, beside which only text is read; None otherwise."""
    # The same letters may begin a table whose first column has that name.
    follows = content[len(MAGIC) : len(MAGIC) + 1]
    is_text = follows.isascii() and follows.decode("ascii").isprintable()
    return PARQUET if content.startswith(MAGIC) and not is_text else None


def refuse_binary(content: bytes) -> None:
    """Raise `InstanceError` if `content` is not text."""
    if binary_kind(content) is not None:
        takes = (
            "`oasis report` takes the table of a sweep, `oasis replay` and `oasis import` a trace"
        )
        raise InstanceError("", f"expected text, got what looks like {PARQUET}; {takes}")
    begin = content[:SAMPLE]
    control = sum(begin.count(bytes([code])) for code in CONTROL)
    # a stray byte spoils its row alone
    if b"\0" in content.partition(b"\n")[0] or 10 * control > len(begin) + 100:
        shown = begin[:4].hex(" ")
        raise InstanceError("", f"expected UTF-8 text, got binary data, which begins with {shown}")


RESULTS = ("run", "solve", "ratio", "compare", "replay", "whatif", "quote")
INSTANCE, ELASTIC, PRICES, JOB, SCHEDULES = "instance", "elastic", "prices", "job", "schedules"
SWEEP, EMPTY = "sweep", "empty"
TRACES = "oasis.traces.plain"  # has `kind_of_trace`: nothing here knows the formats of traces

_FORMATS = {"oasis-instance": INSTANCE, "oasis-elastic-workload": ELASTIC, "oasis-prices": PRICES}
_VERIFIED = "`oasis verify INSTANCE FILE`, `oasis plot` and `oasis report` take it"
_LOOKS = {  # kind -> what it looks like, the command that takes it
    INSTANCE: ("an instance", "`oasis run FILE` and `oasis ratio` take it"),
    ELASTIC: (
        "a workload of elastic jobs",
        "`oasis replay FILE` and `oasis compare` take it",
    ),
    PRICES: ("a file of learned prices", "`oasis run INSTANCE --bounds FILE` takes it"),
    JOB: ("one job", "`oasis quote INSTANCE FILE` takes it"),
    SCHEDULES: ("schedules of another scheduler", _VERIFIED),
    "run": ("a result of oasis run", f"{_VERIFIED}; `oasis run --from` makes it again"),
    **{name: (f"a result of oasis {name}", _VERIFIED) for name in ("solve", "ratio")},
    **{
        name: (
            f"a result of oasis {name}",
            "`oasis plot FILE` and `oasis report` take it",
        )
        for name in ("compare", "replay", "whatif", "quote")
    },
    SWEEP: ("the configuration of a sweep", "`oasis sweep FILE` takes it"),
    EMPTY: ("an empty file", ""),
}


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that is recognised by its content."""

    name: str
    looks: str  # in words, with an article
    takes: str  # the commands that take such a FILE
    is_table: bool = False  # a trace whose first line names columns


def kind_of(text: str) -> FileKind | None:
    """Return the kind of a file with this text; None if it is unknown."""
    begin = text.lstrip("\ufeff \t\r\n")
    if not begin:
        return _kind(EMPTY)
    if begin[0] in "{[":
        try:
            return kind_of_data(json.loads(begin))
        except (ValueError, RecursionError):  # JSON with a fault in it, or TOML
            return _kind(_name_of_toml(begin))
    # The first 200 lines tell the kind, also below the comments with which logs begin.
    lines = [line for line in begin.splitlines()[:200] if line.strip()]
    trace = import_module(TRACES).kind_of_trace(lines, None)
    if trace is not None:
        return cast(FileKind, trace)
    return _kind(_name_of_toml(begin))


def kind_of_data(data: Any) -> FileKind | None:
    """Return the kind of the plain data of a JSON file; None if it is unknown."""
    kind = _kind(_name_of_data(data))
    if kind is None and data is not None:
        kind = import_module(TRACES).kind_of_trace([], data)
    return kind


def _kind(name: str | None) -> FileKind | None:
    return None if name is None else FileKind(name, *_LOOKS[name])


def refuse_other(kind: FileKind | None, wanted: Collection[str], expected: str, file: str) -> None:
    """Refuse a file that looks like another kind than the `wanted` ones.

    A file that looks like no known kind passes: its reader gives a better error.
    """
    if kind is None or kind.name in wanted:
        return
    if kind.name == EMPTY:
        raise InstanceError("", f"expected {expected}, got an empty file")
    looks = f"expected {expected}, got what looks like {kind.looks}"
    takes = re.sub(r"\bFILE\b", lambda _: file, kind.takes)
    raise InstanceError("", f"{looks}; {takes}" if takes else looks)


def _name_of_data(data: Any) -> str | None:
    if not isinstance(data, Mapping):
        return None
    kind = data.get("kind")  # before the format: a result of replay names that of its trace
    if isinstance(kind, str) and kind in RESULTS:
        return kind
    if isinstance(data.get("format"), str) and data["format"] in _FORMATS:
        return _FORMATS[data["format"]]
    if "jobs" in data and "horizon" in data:
        return INSTANCE
    if "epochs" in data and "chunks" in data:
        return JOB
    return SCHEDULES if "kind" not in data and "schedules" in data else None


def _name_of_toml(begin: str) -> str | None:
    try:
        return SWEEP if {"instances", "policies"} & set(tomllib.loads(begin)) else None
    except tomllib.TOMLDecodeError:
        return None  # the reader of sweeps names the fault
