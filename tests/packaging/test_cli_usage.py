"""Bad usage of the ``oasis`` command, and malformed files: one line that says what and where."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.commands import EXAMPLE, SMALL, Oasis, assert_refused

# --- bad usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        (["nonsense"], "nonsense"),
        (["ratio"], "FILE"),
        (["ratio", "absent.json"], "absent.json"),
        (["run", "."], "."),
        (["run", EXAMPLE, "--policy", "fifi"], "fifi"),
        (["run", EXAMPLE, "--granularity", "job"], "job"),
        (["run", EXAMPLE, "--scale", "0"], "> 0"),
        (["run", EXAMPLE, "--scale", "many"], "--scale"),
        (["run", EXAMPLE, "--min-utility-fraction", "1"], "--min-utility-fraction: expected"),
        (["run", EXAMPLE, "--nonsense"], "--nonsense"),
        (["solve", EXAMPLE, "--method", "guess"], "--method: expected one of"),
        (["ratio", EXAMPLE, "--method", "guess"], "--method: expected one of"),
        *(
            ([*command, "--time-limit", seconds], "expected seconds >= 0, or inf, got")
            for command in (["solve", EXAMPLE], ["ratio", EXAMPLE], ["figure", "fig5"])
            for seconds in ("-1", "nan", "-inf")
        ),
        *(
            ([command, EXAMPLE, *option.split()], f"{option.split()[0]}: expected")
            for command in ("solve", "ratio")
            for option in (
                "--time-limit -1",
                "--time-limit many",
                "--work-limit -1",
                "--work-limit nan",
                "--work-limit many",
                "--solver-seed -1",
                "--solver-seed 2147483648",
                "--solver-seed 0.5",
            )
        ),
        *(
            (["ratio", EXAMPLE, option, value], f"{option}: expected")
            for option in ("--scale", "--min-utility-fraction")
            for value in ("-1", "nan", "inf")
        ),
        *(
            (["sweep", EXAMPLE, "--processes", value], "--processes: Input should be")
            for value in ("0", "-1", "many")
        ),
        (["generate"], "--output"),
        (["generate", "--preset", "none", "-o", "x.json"], "preset"),
        (["generate", "--jobs", "0", "-o", "x.json"], "jobs"),
        (["generate", "--mix", "0.5,0.5,0.5", "-o", "x.json"], "mix"),
        (["generate", "--mix", "1,-2,2", "-o", "x.json"], "--mix: expected"),
        (
            ["generate", "-o", Path("no", "such", "directory", "x.json")],
            "no/such/directory: No such directory",
        ),
        (["import", "philly", "absent.csv", "-o", "x.json"], "absent.csv"),
        (["import", "philly", EXAMPLE, "-o", "x.json"], "got what looks like an instance"),
        (["quote", EXAMPLE, EXAMPLE], "expected one job, an entry of an instance's jobs, got what"),
    ],
    ids=lambda value: " ".join(map(str, value))[-40:] if isinstance(value, list) else None,
)
def test_bad_usage_is_one_line_and_2(
    run: Oasis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[object],
    mention: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(run(*arguments), mention)
    assert list(tmp_path.iterdir()) == []


# --- malformed files --------------------------------------------------------------------------


def changed(*path: str | int, to: Any) -> str:
    """SMALL with the value at `path` replaced, as text; `to` may be a function of the old one."""
    data = copy.deepcopy(SMALL)
    *outer, last = path
    inner: Any = data
    for key in outer:
        inner = inner[key]
    inner[last] = to(inner[last]) if callable(to) else to
    return json.dumps(data)


WRONG: tuple[Any, ...] = (
    *(-1, 1e300, 1e-320, float("nan"), float("-inf"), 10**400),
    *("", "x", None, True, [], [1], {"a": 1}),
)
FITTING = {  # what of it is right after all, by key
    "id": ("x",),
    "minibatch_time": (1e-320,),
    "gradient_mb": (1e-320,),
    "priority": (1e-320,),
    "decay": (1e300, 1e-320),
    "target": (1e300, 1e-320),
}


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of an instance but for its metadata, which may hold anything."""
    parts = data.items() if isinstance(data, dict) else enumerate(data)
    for key, part in parts:
        if key != "metadata":
            yield (*path, key)
            if isinstance(part, dict | list):
                yield from places(part, (*path, key))


@pytest.mark.parametrize("key", sorted({p[-1] for p in places(SMALL) if isinstance(p[-1], str)}))
def test_whatever_stands_at_a_key_is_right_or_refused_with_the_key(
    run: Oasis, tmp_path: Path, key: str
) -> None:
    path, output = tmp_path / "bad.json", tmp_path / "out.json"
    place = next(place for place in places(SMALL) if place[-1] == key)
    right = FITTING.get(key, ())
    for value in WRONG:
        is_list = isinstance(value, list) and key in ("jobs", "resources")
        if is_list or value in right or (key == "capacity" and value == {}):
            continue
        path.write_text(changed(*place, to=value), encoding="utf-8")
        assert_refused(run("describe", path, "-o", output), str(path), key)
        assert not output.exists()


# --- what ends a solve ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["solve", "ratio"])
def test_a_solve_ends_at_the_gap_that_was_asked_for(run: Oasis, command: str) -> None:
    options = ("--work-limit", "20", "--gap", "0.5", "--no-improvement", "10", "--json")
    code, out, _ = run(command, EXAMPLE, *options)
    document = json.loads(out)
    assert (code, document["status"]) == (3, "gap_limit")
    assert 1e-6 < document["gap"] <= 0.5


@pytest.mark.parametrize("flag", ["--gap", "--no-improvement"])
@pytest.mark.parametrize("bad", ["-1", "nan", "much"])
def test_a_criterion_that_is_none_is_refused_by_its_flag(run: Oasis, flag: str, bad: str) -> None:
    assert_refused(run("solve", EXAMPLE, flag, bad), flag)
