"""What the command line refuses: one line that says why, and no file is written or lost."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from tests.builders import elastic_data

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))


def contents() -> dict[Path, bytes]:
    """All files of the working directory."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.fixture
def files(call, example, trace):
    """The files beside the lines, in the working directory."""
    for name, text in REFUSED["files"].items():
        Path(name).write_text(text.removeprefix("\n"))
    Path("elastic.json").write_text(json.dumps(elastic_data(2)))
    Path("i").write_bytes(example.read_bytes())
    pd.DataFrame({"a": [1]}).to_parquet("other.parquet")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("row", REFUSED["lines"].strip().splitlines())
def test_what_is_refused_is_one_line_and_costs_no_file(call, row: str) -> None:
    line, says = row.split(" => ")
    if "run.json" in line:
        assert call("run i -o run.json")[0] == 0
    before = contents()
    code, out, err = call(line)
    *notes, last = err.splitlines()
    assert (code, out) == (2, "")
    assert says in last
    assert last.startswith("oasis: ")
    assert notes == [] or line.startswith("whatif")
    assert contents() == before
