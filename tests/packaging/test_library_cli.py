"""``oasis library``: what it lists, writes and checks."""

from __future__ import annotations

import json
from pathlib import Path

import oasis
from tests.packaging.commands import Oasis, assert_refused

NAME = "testbed-t10-w7-p2-j12-mixed-s7"


def test_list_names_what_is_known(run: Oasis) -> None:
    code, out, err = run("library", "list", "testbed, few jobs")
    assert (code, err) == (0, "")
    heading, columns, *rows = out.splitlines()
    assert heading.startswith("10 instances, ")
    assert columns.split()[:4] == ["instance", "value", "bound", "gap"]
    assert sum(row.startswith("testbed") for row in rows) == 10  # some are wrapped
    assert "…" not in out
    code, out, _ = run("library", "list", "--json")
    listed = json.loads(out)["instances"]
    assert len(listed) == 200
    assert all(row["value"] <= row["bound"] for row in listed)
    refused = run("library", "list", "nobody")
    assert_refused(refused, "no instance and no family is like 'nobody'")


def test_an_instance_is_got_solved_and_checked(run: Oasis, tmp_path: Path) -> None:
    instance, mine, best = (tmp_path / name for name in ("i.json", "mine.json", "best.json"))
    code, _, err = run("library", "get", NAME, "-o", instance)
    assert (code, err.split(":")[0]) == (0, f"wrote {instance}")
    assert oasis.read(instance) == oasis.generate("testbed", seed=7)
    assert run("run", instance, "-o", mine)[0] == 0
    code, out, _ = run("library", "check", mine, "--json")
    found = json.loads(out)
    assert (code, found["name"], found["verified"]) == (0, NAME, True)
    assert found["verdict"] in ("worse", "the same")
    best.write_text(run("library", "schedules", NAME)[1])
    code, out, _ = run("library", "check", best, "--name", NAME)
    assert code == 0
    assert "verified: the same" in out
    assert_refused(run("library", "check", best), str(best), "instance: missing")
    assert_refused(
        run("library", "get", f"{NAME}0"),
        "expected an instance that 'oasis library list' names, got",
        "did you mean",
    )
    broken = json.loads(best.read_text())
    broken["schedules"][0]["workers"][0][2] += 1000
    best.write_text(json.dumps(broken))
    assert_refused(run("library", "check", best, "--name", NAME), str(best), "[job ")
    code, out, _ = run("library", "verify", "testbed, few jobs")
    assert (code, out.split(":")[0]) == (0, "10 instances")
