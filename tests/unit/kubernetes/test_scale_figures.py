"""The table of the benchmark of the adapter: its rows, and the processor time in them."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.kubernetes.benchmarks.processor import (
    LAST,
    Sampler,
    go_last,
    peak_megabytes,
    seconds_of,
    within,
)
from tests.kubernetes.benchmarks.scale import Measured, write_row

MEASURED = Measured(*(1 for _ in fields(Measured)))


def test_a_row_takes_the_place_of_the_one_of_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    runs = [(200, True, 1.0), (30, True, 2.0), (200, False, 4.0), (200, True, 3.0)]
    for nodes, last, seconds in runs:
        row = replace(MEASURED, nodes=nodes, followers_last=last, patch_seconds=seconds)
        write_row(path, row)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = ("nodes", "followers_last", "patch_seconds")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("30", "True", "2.0"),
        ("200", "False", "4.0"),
        ("200", "True", "3.0"),
    ]
    assert list(rows[0]) == [field.name for field in fields(Measured)]


def test_processor_time_between_two_moments() -> None:
    samples = [(0.0, 1.0), (10.0, 6.0), (20.0, 6.0)]
    assert within(samples, 0.0, 20.0) == 5.0
    assert within(samples, 8.0, 15.0) == 1.0
    with pytest.raises(ValueError, match="at: expected a moment"):
        within(samples, 5.0, 21.0)


def test_who_goes_last_has_the_least_priority_with_all_its_threads() -> None:
    words = "import threading; e = threading.Event(); threading.Thread(target=e.wait).start(); "
    words += "print(1, flush=True); input(); e.set()"
    with subprocess.Popen(
        [sys.executable, "-c", words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"1"
        go_last(process.pid)
        threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
        assert [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads] == [LAST, LAST]
        group = Path(f"/proc/{process.pid}/autogroup")
        assert not group.exists() or group.read_text().endswith(f"nice {LAST}\n")
        process.communicate(b"\n")


def test_the_sampler_sees_what_this_process_does() -> None:
    sampler = Sampler({"us": [os.getpid()]})
    sampler.start()
    begin = seconds_of(os.getpid())
    while seconds_of(os.getpid()) < begin + 0.6:
        pass
    time.sleep(0.6)  # the next sample
    sampler.stop()
    (samples,) = sampler.samples.values()
    assert samples[-1][1] >= begin + 0.6
    assert peak_megabytes(os.getpid()) > 1.0
