"""Reading of files, whatever compressed them, and recognition of their kinds by content."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO, cast

from oasis.extras import EXTRAS, install_line
from oasis.model.errors import InstanceError

STANDARD_INPUT = "-"
MAGIC = b"PAR1"  # with which a Parquet file begins
CONTROL = (*range(7), *range(14, 27), *range(28, 32))  # codes that text has no use for
SAMPLE = 8192  # bytes that are looked at


def read_content(path: str | os.PathLike[str], *, parquet: bool = False) -> bytes:
    """Read and decompress a text file, or with `parquet` such a one; other binary data raise."""
    is_file = str(path) != STANDARD_INPUT
    content = decompressed(Path(path).read_bytes() if is_file else _standard_bytes(sys.stdin))
    begin = content[:SAMPLE]
    control = sum(begin.count(bytes([code])) for code in CONTROL)
    if is_parquet(content):
        if not parquet:
            raise InstanceError("", "expected text, got what looks like a Parquet file")
    # a stray byte spoils its row alone
    elif b"\0" in content.partition(b"\n")[0] or 10 * control > len(begin) + 100:
        shown = begin[:4].hex(" ")
        raise InstanceError("", f"expected UTF-8 text, got binary data, which begins with {shown}")
    return content


@lru_cache(maxsize=1)  # a pipe can be read once, and its kind and its reader want its content
def _standard_bytes(stream: TextIO | None) -> bytes:
    if stream is None:
        raise InstanceError("", "standard input is closed")
    return stream.buffer.read()


def decompressed(content: bytes) -> bytes:
    """Return `content`, decompressed if its first bytes are those of a compressed file."""
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
    """Decompress all frames of a zstd file; `InstanceError` without the package zstandard."""
    try:
        package = import_module("zstandard")
    except ModuleNotFoundError:
        line = install_line(EXTRAS["zstandard"])
        raise InstanceError("", f"is compressed with zstd, which needs zstandard: {line}") from None
    decompressed = bytearray()
    try:
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


def is_parquet(content: bytes) -> bool:
    """Return whether `content` begins as a Parquet file does."""
    # The same letters may begin a table whose first column has that name.
    follows = content[len(MAGIC) : len(MAGIC) + 1]
    is_text = follows.isascii() and follows.decode("ascii").isprintable()
    return content.startswith(MAGIC) and not is_text


RESULTS = ("run", "solve", "ratio", "compare", "replay", "whatif", "quote")
INSTANCE, ELASTIC, PRICES = "instance", "elastic", "prices"
EMPTY = "an empty file"
TRACES = "oasis.traces.plain"  # has `kind_of_trace`: nothing here knows the formats of traces

_FORMATS = {"oasis-instance": INSTANCE, "oasis-elastic-workload": ELASTIC, "oasis-prices": PRICES}
_LOOKS = {
    INSTANCE: "an instance",
    ELASTIC: "a workload of elastic jobs",
    PRICES: "a file of learned prices",
    **{name: f"a result of oasis {name}" for name in RESULTS},
}


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, such as an instance or a trace, recognised by its content."""

    name: str
    looks: str  # in words, with an article
    is_table: bool = False  # a trace whose first line names columns


def kind_of(text: str) -> FileKind | None:
    """Return the kind of a file with this text; None if it is unknown."""
    begin = text.lstrip("\ufeff \t\r\n")
    if not begin:
        return FileKind(EMPTY, EMPTY)
    if begin.startswith(("{", "[")):
        try:
            return kind_of_data(json.loads(begin))
        except (ValueError, RecursionError):
            return None
    # The first 200 lines tell the kind, also below the comments with which logs begin.
    lines = [line for line in begin.splitlines()[:200] if line.strip()]
    return _kind_of_trace(lines, None) if lines else None


def kind_of_data(data: Any) -> FileKind | None:
    """Return the kind of the plain data of a JSON file; None if it is unknown."""
    if isinstance(data, Mapping):
        # The kind comes first: a result of replay also names the format of its trace.
        for name in (data.get("kind"), _FORMATS.get(str(data.get("format")))):
            if isinstance(name, str) and name in _LOOKS:
                return FileKind(name, _LOOKS[name])
    return None if data is None else _kind_of_trace([], data)


def _kind_of_trace(lines: list[str], data: Any) -> FileKind | None:
    return cast("FileKind | None", import_module(TRACES).kind_of_trace(lines, data))


def refuse_other(kind: FileKind | None, wanted: Collection[str], expected: str) -> None:
    """Raise `InstanceError` for a file of a known kind that is not in `wanted` (names)."""
    # One that looks like no known kind passes: its reader gives a better error.
    if kind is not None and kind.name not in wanted:
        looks = kind.looks if kind.name == EMPTY else f"what looks like {kind.looks}"
        raise InstanceError("", f"expected {expected}, got {looks}")
