"""Recognition of files by content, and the command that reads each kind."""

from __future__ import annotations

import bz2
import csv
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
BINARY = (  # how a file begins -> what it is
    (b"PAR1", PARQUET),
    (b"ARROW1", "an Arrow file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x9d", "a file of the old Unix program compress"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"\xff\x06\0\0sNaPpY", "a snappy file"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\x7fELF", "a program"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\xff\xfe\0\0", "text in UTF-32"),
    (b"\0\0\xfe\xff", "text in UTF-32"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)
REMEDIES = {
    PARQUET: "`oasis report` takes the table of a sweep, `oasis replay` and `oasis import` a trace",
    "a zip archive": "unpack it first",
    "a tar archive": "unpack it first",
    "a 7z archive": "unpack it first",
    "a RAR archive": "unpack it first",
    "text in UTF-16": "`iconv -f UTF-16 -t UTF-8` converts it",
    "text in UTF-32": "`iconv -f UTF-32 -t UTF-8` converts it",
}
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
    found = bytearray()
    try:
        # zstd files may hold several frames, one after the other, as gzip files do.
        while content:
            stream = package.ZstdDecompressor().decompressobj()
            found += stream.decompress(content)
            if not stream.eof:
                raise EOFError("it ends too early")
            content = stream.unused_data
    except package.ZstdError as error:
        raise ValueError(str(error)) from None
    return bytes(found)


COMPRESSIONS: Mapping[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    rb"\x1f\x8b": ("gzip", gzip.decompress),
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": ("bzip2", bz2.decompress),
    rb"\xfd7zXZ\0": ("xz", lzma.decompress),
    rb"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}  # how a file begins -> what compressed it


def binary_kind(content: bytes) -> str | None:
    r"""Return the kind of file that starts with these bytes; None if it is text."""
    for begin, name in BINARY:
        # A mark of letters alone, such as ORC, may also
        # begin a table whose first column has that name.
        follows = content[len(begin) : len(begin) + 1]
        if content.startswith(begin) and not (begin.isalnum() and _is_printable(follows)):
            return name
    if content.startswith(b"PK") and content[2:4] in (b"\3\4", b"\5\6", b"\7\x08"):
        return "a NumPy archive" if b".npy" in content[:200] else "a zip archive"
    if content[257:262] == b"ustar":
        return "a tar archive"
    # Without a byte order mark, text in UTF-16 shows by a NUL at every other byte.
    begin = content[:400]
    if re.fullmatch(rb"(?s)(?:[\t\r\n -~]\0|\0[\t\r\n -~])+.?", begin):
        return "text in UTF-16"
    return None


def _is_printable(byte: bytes) -> bool:
    return byte.isascii() and byte.decode("ascii").isprintable()


def refuse_binary(content: bytes) -> None:
    """Raise `InstanceError`, naming the kind and what helps, if `content` is not text."""
    kind = binary_kind(content)
    if kind is not None:
        remedy = f"; {REMEDIES[kind]}" if kind in REMEDIES else ""
        raise InstanceError("", f"expected text, got what looks like {kind}{remedy}")
    first, _, _ = content.partition(b"\n")
    begin = content[:SAMPLE]
    control = sum(begin.count(bytes([code])) for code in CONTROL)
    if b"\0" in first or 10 * control > len(begin) + 100:  # a stray byte spoils its row alone
        raise InstanceError("", "expected text, got binary data of no kind that is known here")


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
    "saved": ("the saved state of a scheduler", "`OASiS.load` or `LiveScheduler.load` reads it"),
    "job list": ("a list of jobs in JSON", "an instance has them under `jobs`"),
    "kubernetes": ("an object of Kubernetes", "`kubectl create -f FILE` takes it"),
    "python": ("Python code", "`--policies MODULE:CLASS` takes a policy of your own"),
    "page": ("a page of HTML", ""),
    "markdown": ("a page of Markdown", ""),
    "sweep table": (
        "rows of a sweep or a figure in CSV",
        "`oasis report` takes the Parquet table of a sweep",
    ),
    "csv": ("a table with commas between columns", "`oasis import --help` lists what is read"),
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
    header = set(_cells(lines[0]))
    if {"policy", "seed"} <= header or {"value", "low", "high"} <= header:
        return _kind("sweep table")
    return _kind(_name_of_toml(begin) or _name_of_other(begin, lines))


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


def _name_of_data(data: Any) -> str | None:  # noqa: PLR0911 (one for each kind)
    if isinstance(data, list):
        is_jobs = bool(data) and all(_name_of_data(entry) == JOB for entry in data[:3])
        return "job list" if is_jobs else None
    if not isinstance(data, Mapping):
        return None
    if data.keys() == {"crc", "entry"}:
        return "saved"
    kind = data.get("kind")  # before the format: a result of replay names that of its trace
    if isinstance(kind, str) and kind in RESULTS:
        return kind
    if isinstance(data.get("format"), str) and data["format"] in _FORMATS:
        return _FORMATS[data["format"]]
    if "apiVersion" in data:
        return "kubernetes"
    if "jobs" in data and "horizon" in data:
        return INSTANCE
    if "epochs" in data and "chunks" in data:
        return JOB
    return SCHEDULES if "kind" not in data and "schedules" in data else None


def _cells(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _name_of_toml(begin: str) -> str | None:
    if not re.search(r"(?m)^\s*\[\[?(instances|policies)\]\]?|^\s*(instances|policies)\s*=", begin):
        return None
    try:
        return SWEEP if {"instances", "policies"} & set(tomllib.loads(begin)) else None
    except tomllib.TOMLDecodeError:
        return SWEEP  # the reader of sweeps names the fault


def _name_of_other(begin: str, lines: list[str]) -> str | None:
    if re.match(r"(?i)<!doctype html|<html", begin):
        return "page"
    if re.search(r"(?m)^apiVersion:\s", begin) and re.search(r"(?m)^kind:\s", begin):
        return "kubernetes"
    if re.search(r"(?m)^```[\w{} -]*$", begin):  # a block of code in it may be Python
        return "markdown"
    if re.search(r"(?m)^(import \w|from [\w.]+ import |class \w+.*:\s*$|def \w+\()", begin):
        return "python"
    counts = {len(_cells(line)) for line in lines[:5]}
    return "csv" if len(counts) == 1 and counts.pop() > 1 else None
