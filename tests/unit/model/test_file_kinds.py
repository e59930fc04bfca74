"""Files are decompressed, known by their content alone, and what is no text is refused by kind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable

import pytest
import zstandard

import oasis
from oasis.model import file_kinds
from oasis.model.examples import example_text
from oasis.model.file_kinds import decompressed, kind_of, read_content
from oasis.model.instance_file import parse_json
from tests.builders import rows

TEXTS = rows(__file__, "texts.toml")
TEXT = b"id,submitted,duration,gpus\n" + b"a,1,2,3\n" * 50
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


def test_a_kind_is_known_by_its_content():
    known = {"instance": example_text("congested"), "elastic": example_text("elastic")}
    cases = [
        *(known | TEXTS["kinds"]).items(),
        *(("slurm", text) for text in TEXTS["sacct"].values()),
    ]
    for name, text in cases:
        found = kind_of(text)
        assert found is not None, text
        assert found.name == name
    for text in TEXTS["unknown"].values():
        assert kind_of(text) is None, text


def test_json_that_may_be_anything_is_parsed():
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]
    with pytest.raises(oasis.InstanceError, match=r"^expected UTF-8 text"):
        parse_json(b'["\xff"]')


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_files_are_read_whatever_their_name(kind, tmp_path):
    path, whole = tmp_path / "jobs", COMPRESS[kind](TEXT)
    path.write_bytes(whole)
    assert read_content(path) == TEXT
    assert decompressed(whole + COMPRESS[kind](b"b")) == TEXT + b"b"  # one appended to the other
    for keep in (len(whole) // 2, min(len(whole) - 1, int(0.99 * len(whole)))):
        with pytest.raises(oasis.InstanceError) as caught:
            decompressed(whole[:keep])
        expected = f"expected a whole {kind} file, got a damaged or incomplete one ("
        assert str(caught.value).startswith(expected)
        assert "\n" not in str(caught.value)


def test_zstd_without_its_package_says_what_to_install(monkeypatch):
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(file_kinds, "import_module", absent)
    with pytest.raises(oasis.InstanceError, match=r"needs zstandard: pip install '.*\[cli\]'$"):
        decompressed(zstandard.compress(TEXT))


def test_binary_data_is_refused_by_its_first_bytes_and_text_that_begins_like_it_is_text(tmp_path):
    path = tmp_path / "file"
    for data in (b"PAR1,a\n", b"BZhang,1\n", TEXT, b"", b"\xe9\n"):
        path.write_bytes(data)
        assert read_content(path) == data
    for data, begins in (
        (bytes(range(256)) * 40, "00 01 02 03"),
        (b"PK\x03\x04\x14\0\0\0", "50 4b 03 04"),
        ("id,gpus\n".encode("utf-16"), "ff fe 69 00"),
        (b"ab\n" + b"\1\2\0" * 90, "61 62 0a 01"),
    ):
        path.write_bytes(data)
        with pytest.raises(oasis.InstanceError) as caught:
            read_content(path)
        expected = f"expected UTF-8 text, got binary data, which begins with {begins}"
        assert str(caught.value) == expected


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert read_content("-") == read_content("-") == TEXT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    assert read_content("-") == b"x"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(oasis.InstanceError, match=r"^standard input is closed$"):
        read_content("-")
