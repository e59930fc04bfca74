"""The Philly trace as plain jobs: GPUs and duration, nothing assumed (docs/simulator)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from oasis.errors import InstanceError
from oasis.simulator.workload import PlainJob
from oasis.traces.philly import COLUMNS, submission_time
from oasis.traces.table import Table, read_table, real, whole


def read_philly_plain(
    path: str | os.PathLike[str],
    *,
    virtual_cluster: str = "",
    max_gpus: int | None = None,
    first: int = 0,
    jobs: int | None = None,
) -> list[PlainJob]:
    """Jobs of the Philly trace in order of submission, those of one second as in the file.

    Parameters
    ----------
    path : path
        CSV file with the columns ``timestamp,duration,num_gpus,gpu_time,cluster``.
    virtual_cluster : str
        Only the jobs of this virtual cluster; empty: all.
    max_gpus : int, optional
        Leave out jobs with more GPUs.
    first, jobs : int, optional
        Of what remains, so many jobs (default: all) from this one on.

    Returns
    -------
    list of PlainJob
        Named after their lines in the file; submitted in seconds after the first of them.

    Raises
    ------
    InstanceError
        If a column is missing or no job is left.
    """

    def parse(line: int, row: Mapping[str, str]) -> tuple[float, float, int, int, str]:
        gpus = whole(row["num_gpus"], "num_gpus", 1)
        duration = real(row["duration"], "duration")
        return submission_time(row["timestamp"]), duration, gpus, line, row["cluster"]

    table: Table[tuple[float, float, int, int, str]] = read_table(path, COLUMNS, parse)
    wanted = [
        row
        for row in table.rows
        if virtual_cluster in ("", row[4]) and (max_gpus is None or row[2] <= max_gpus)
    ]
    wanted.sort(key=lambda row: row[0])
    wanted = wanted[first:] if jobs is None else wanted[first : first + jobs]
    if not wanted:
        raise InstanceError("jobs", f"expected at least one job, got none from {path}")
    begin = wanted[0][0]
    return [
        PlainJob(f"philly-{line}", time - begin, duration, gpus)
        for time, duration, gpus, line, _ in wanted
    ]
