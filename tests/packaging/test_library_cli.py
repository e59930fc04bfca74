"""``oasis library``: what it lists, writes, checks and keeps, also after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oasis
from experiments.library import Library
from experiments.library.improve import JOURNAL
from tests.packaging.commands import ROOT, Oasis, assert_refused

NAME = "testbed-t10-w7-p2-j12-mixed-s7"
PATIENCE_SECONDS = 120.0
WRITER = """
import sys
from pathlib import Path
from experiments.library import Library
from experiments.library.improve import sole_writer
with sole_writer(Library(Path(sys.argv[1]))):
    print("writing", flush=True)
    sys.stdin.read()
"""


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
    assert_refused(run("library", "get", f"{NAME}0"), "close to it is")
    broken = json.loads(best.read_text())
    broken["schedules"][0]["workers"][0][2] += 1000
    best.write_text(json.dumps(broken))
    assert_refused(run("library", "check", best, "--name", NAME), str(best), "[job ")


def test_what_is_added_is_kept_if_it_is_better(run: Oasis, tmp_path: Path) -> None:
    known = Library().records()[NAME]
    library = Library(tmp_path / "library")
    document = tmp_path / "best.json"
    document.write_text(run("library", "schedules", NAME)[1])
    options = ("--name", NAME, "--library", library.directory)
    library.directory.mkdir()
    code, out, _ = run("library", "add", document, *options)
    assert code == 0
    assert "verified: first" in out
    assert library.records()[NAME].value == known.value
    before = library.table.read_bytes()
    assert "the same" in run("library", "add", document, *options)[1]
    assert library.table.read_bytes() == before
    code, out, _ = run("library", "verify", "--library", library.directory)
    assert (code, out.split(":")[0]) == (0, "1 instances")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX has the locks")
def test_nothing_is_added_while_another_process_writes(run: Oasis, tmp_path: Path) -> None:
    library, document = Library(tmp_path / "library"), tmp_path / "best.json"
    document.write_text(run("library", "schedules", NAME)[1])
    options = ("--name", NAME, "--library", library.directory)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(library.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        refused = run("library", "add", document, *options)
        assert_refused(refused, "is open in another process; close it first")
        assert not library.table.exists()
        writer.kill()
    assert run("library", "add", document, *options)[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_pass_leaves_a_whole_table_and_goes_on(tmp_path: Path) -> None:
    library = Library(tmp_path / "library")
    words = ["library", "improve", "testbed, few jobs", "--work-limit", "0.1"]
    code = "from experiments.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words, "--library", str(library.directory)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE_SECONDS
    journal = library.directory / JOURNAL
    while not (journal.exists() and len(journal.read_text().splitlines()) > 2):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    kept = library.records()
    assert 2 <= len(kept) < 10
    for record in kept.values():
        assert library.verify(record) == record.value
    done = len(journal.read_text().splitlines()) - 1
    again = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert len(again.stderr.splitlines()) == 10 - done
    after = library.records()
    assert len(after) == 10
    assert all(after[name].value >= record.value for name, record in kept.items())
    assert all(after[name].bound <= record.bound for name, record in kept.items())
    assert not journal.exists()
