"""The examples that come with the package: listed, written whole, and worth a try."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import oasis
from oasis.model.examples import EXAMPLES, LIST, example_text, read_example
from tests.builders import exit_code as call

ROOT = Path(oasis.__file__).parents[1]


def test_every_file_is_listed_and_the_pages_have_the_same():
    there = {path.name for path in (ROOT / "oasis" / "examples").iterdir()}
    assert there == {LIST, *(example.file for example in EXAMPLES.values())}
    for name, example in EXAMPLES.items():
        page = ROOT / "docs" / "examples" / example.file
        if page.exists():
            assert page.read_text() == example_text(name)


def test_the_default_is_the_instance_of_the_pages():
    assert read_example() == oasis.read(ROOT / "docs" / "examples" / "congested.json")
    with pytest.raises(oasis.OasisError, match="expected an instance, got 'jobs', a trace"):
        read_example("jobs")
    with pytest.raises(oasis.OasisError, match=r"name: expected one of congested, .*, got 'x'"):
        read_example("x")


def test_what_is_proposed_works_with_the_files_that_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, example in EXAMPLES.items():
        assert call("example", name, "-o", example.file) == 0
        assert capsys.readouterr() == ("", f"wrote {example.file}: {example.about}\n")
    for example in EXAMPLES.values():
        more = ["--dry-run"] if example.command.startswith("sweep") else []
        assert call(*shlex.split(example.command), *more) == 0, example.command


def test_examples_are_listed_and_printed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # wide enough for each command on one line
    assert call("example") == 0
    out = capsys.readouterr().out
    assert all(f"oasis {example.command}" in " ".join(out.split()) for example in EXAMPLES.values())
    assert call("example", "--json") == 0
    assert json.loads(capsys.readouterr().out)["examples"].keys() == EXAMPLES.keys()
    assert call("example", "job") == 0
    assert capsys.readouterr().out == example_text("job")
