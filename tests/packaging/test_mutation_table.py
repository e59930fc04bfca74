"""The table of mutated parts names files that exist, and explains only lines that are there."""

import tomllib
from pathlib import Path

import pytest

from tests.mutation.parts import PARTS, ROOT, Part, files

EQUIVALENT = ROOT / "tests" / "mutation" / "equivalent.toml"


def without_spaces(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_module_and_every_test_of_a_part_exists(part: Part) -> None:
    assert all(Path(ROOT, name).is_file() for name in files(part.modules) + files(part.tests))


def test_parts_have_names_and_modules_of_their_own() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
    modules = [module for part in PARTS for module in files(part.modules)]
    assert len(set(modules)) == len(modules)


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"no file matches 'oasis/no_such_module\.py'"):
        files(["oasis/no_such_module.py"])


def test_every_mutant_known_to_change_nothing_is_one_of_the_present_code() -> None:
    """An entry whose line has changed explains nothing any more."""
    sources = {
        part.name: "\n".join((ROOT / name).read_text() for name in files(part.modules))
        for part in PARTS
    }
    for entry in tomllib.loads(EQUIVALENT.read_text()).get("mutant", []):
        assert set(entry) - {"becomes"} == {"part", "line", "why"}, entry
        assert without_spaces(entry["line"]) in without_spaces(sources[entry["part"]]), entry
        assert without_spaces(entry["line"]) != without_spaces(entry.get("becomes", "")), entry
        assert entry["why"].endswith("."), entry
