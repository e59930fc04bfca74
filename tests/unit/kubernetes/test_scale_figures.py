"""The table of the benchmark of the adapter: its rows, and the processor time in them."""

from __future__ import annotations

import csv
import os
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.kubernetes.benchmarks.processor import Sampler, peak_megabytes, seconds_of, within
from tests.kubernetes.benchmarks.scale import Measured, write_row

MEASURED = Measured(*(1 for _ in fields(Measured)))


def test_a_row_takes_the_place_of_the_one_of_its_size(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for nodes, seconds in ((200, 1.0), (30, 2.0), (200, 3.0)):
        write_row(path, replace(MEASURED, nodes=nodes, patch_seconds=seconds))
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["nodes"], row["patch_seconds"]) for row in rows] == [("30", "2.0"), ("200", "3.0")]
    assert list(rows[0]) == [field.name for field in fields(Measured)]


def test_processor_time_between_two_moments() -> None:
    samples = [(0.0, 1.0), (10.0, 6.0), (20.0, 6.0)]
    assert within(samples, 0.0, 20.0) == 5.0
    assert within(samples, 8.0, 15.0) == 1.0
    with pytest.raises(ValueError, match="at: expected a moment"):
        within(samples, 5.0, 21.0)


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
