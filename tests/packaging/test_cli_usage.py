"""Bad usage of the ``oasis`` command: one line that says what and where; and what ends a solve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packaging.commands import EXAMPLE, Oasis, assert_refused

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
            )
        ),
        *(
            (["solve", EXAMPLE, "--solver-seed", seed], "--solver-seed: expected")
            for seed in ("-1", "2147483648", "0.5")
        ),
        *(
            (["ratio", EXAMPLE, option, value], f"{option}: expected")
            for option in ("--scale", "--min-utility-fraction")
            for value in ("-1", "nan", "inf")
        ),
        *(
            (["sweep", EXAMPLE, "--processes", value], "--processes: expected")
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
