"""Files are decompressed, and what is not text is refused by kind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import oasis
from oasis.model import file_kinds as content
from oasis.model.file_kinds import decompressed, read_content

TEXT = b"id,submitted,duration,gpus\n" + b"a,1,2,3\n" * 50
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_files_are_read_whatever_their_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read_content(path) == TEXT


@pytest.mark.parametrize("kind", COMPRESS)
def test_parts_that_were_appended_are_read_too(kind: str) -> None:
    assert decompressed(COMPRESS[kind](TEXT) + COMPRESS[kind](b"b")) == TEXT + b"b"


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_file_is_one_clear_line(kind: str, keep: float) -> None:
    whole = COMPRESS[kind](TEXT)
    with pytest.raises(oasis.InstanceError) as caught:
        decompressed(whole[: min(len(whole) - 1, int(keep * len(whole)))])
    expected = f"expected a whole {kind} file, got a damaged or incomplete one ("
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_zstd_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(content, "import_module", absent)
    with pytest.raises(oasis.InstanceError, match=r"needs zstandard: pip install '.*\[cli\]'$"):
        decompressed(zstandard.compress(TEXT))


@pytest.mark.parametrize("data", [b"PAR1,a\n", b"BZhang,1\n", TEXT, b"", b"\xe9\n"])
def test_text_that_begins_like_them_is_text(data: bytes, tmp_path: Path) -> None:
    assert decompressed(data) == data
    (tmp_path / "file").write_bytes(data)
    assert read_content(tmp_path / "file") == data


@pytest.mark.parametrize(
    ("data", "begins"),
    [
        (bytes(range(256)) * 40, "00 01 02 03"),
        (b"PK\x03\x04\x14\0\0\0", "50 4b 03 04"),
        ("id,gpus\n".encode("utf-16"), "ff fe 69 00"),
        (b"ab\n" + b"\1\2\0" * 90, "61 62 0a 01"),
    ],
)
def test_binary_data_is_refused_by_its_first_bytes(
    data: bytes, begins: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(oasis.InstanceError) as caught:
        read_content(tmp_path / "file")
    expected = f"expected UTF-8 text, got binary data, which begins with {begins}"
    assert str(caught.value) == expected


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert read_content("-") == read_content("-") == TEXT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    assert read_content("-") == b"x"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(oasis.InstanceError, match=r"^standard input is closed$"):
        read_content("-")
