"""The bytes of a file that is given: decompressed, and refused by kind where they are no text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from weakref import WeakKeyDictionary

from oasis.model.errors import InstanceError
from oasis.model.extras import EXTRAS, install_line

STANDARD_INPUT = "-"
NUMPY = "a NumPy archive"
BINARY = (  # how a file begins -> what it is
    (b"PAR1", "a Parquet file"),
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
    "a Parquet file": "`oasis report` takes the table of a sweep; write a trace as CSV",
    NUMPY: "`OASiS.load` reads the state of a scheduler",
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


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Read a file of text; decompress what gzip, bzip2, xz or zstd wrote.

    Standard input is read once: whoever asks again gets the same bytes.

    Parameters
    ----------
    path : path
        The file; ``-`` stands for standard input.

    Returns
    -------
    bytes
        Its text, in an encoding that has the ASCII characters as they are.

    Raises
    ------
    InstanceError
        If a compressed file is damaged or incomplete, or the content is not text.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import bz2, tempfile
    >>> from pathlib import Path
    >>> from oasis.model.content import read_content
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv.bz2")
    ...     _ = path.write_bytes(bz2.compress(b"id,gpus"))
    ...     read_content(path)
    b'id,gpus'
    """
    content = _standard_bytes() if str(path) == STANDARD_INPUT else Path(path).read_bytes()
    content = decompressed(content)
    refuse_binary(content)
    return content


def _standard_bytes() -> bytes:
    stream = sys.stdin
    if stream is None:
        raise InstanceError("", "standard input is closed")
    if stream not in _standard_input:
        _standard_input[stream] = stream.buffer.read()
    return _standard_input[stream]


def decompressed(content: bytes) -> bytes:
    """`content`, or what was compressed in it; the kind is found from how it begins."""
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
        while content:
            stream = package.ZstdDecompressor().decompressobj()
            found += stream.decompress(content)
            if not stream.eof:
                raise ValueError("it ends too early")
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
    r"""What `content` is, if it is not text; None if it is.

    Examples
    --------
    >>> binary_kind(b"PAR1\x15\x04"), binary_kind(b"PAR1,b")
    ('a Parquet file', None)
    """
    for begin, name in BINARY:
        follows = content[len(begin) : len(begin) + 1]
        if content.startswith(begin) and not (begin.isalnum() and _is_printable(follows)):
            return name
    if content.startswith(b"PK") and content[2:4] in (b"\3\4", b"\5\6", b"\7\x08"):
        return NUMPY if b".npy" in content[:200] else "a zip archive"
    if content[257:262] == b"ustar":
        return "a tar archive"
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
