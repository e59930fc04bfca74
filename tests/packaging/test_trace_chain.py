"""The same file through import, describe, replay and ratio, and through an independent program.

The program below reads a file with ``csv`` alone, and knows FIFO and EASY backfilling; it shares
nothing with the toolkit. Counts of jobs, and mean waiting, completion and makespan must agree.
"""

from __future__ import annotations

import csv
import heapq
import json
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
PHILLY, PODS = DATA / "philly_sia.csv", DATA / "openb_pod_list_default.csv"
Rows = list[tuple[float, float, int]]  # submitted, duration, GPUs

SACCT = """\
JobID|User|Partition|Submit|ElapsedRaw|State|AllocTRES
{rows}
90|eve|gpu|2024-03-01T08:00:30|0|CANCELLED|cpu=8,gres/gpu=2
91|eve|cpu|2024-03-01T08:00:30|600|COMPLETED|cpu=8,mem=8G
92|eve|gpu|2024-03-01T08:00:30|600|RUNNING|cpu=8,gres/gpu=2
"""


# --- the independent program --------------------------------------------------------------------


def fifo(rows: Rows, gpus: int) -> list[float]:
    """Start of each job: none before the one ahead of it."""
    now, free, ends, starts = 0.0, gpus, [], []
    for submitted, duration, wanted in rows:
        now = max(now, submitted)
        while ends and (ends[0][0] <= now or free < wanted):
            end, held = heapq.heappop(ends)
            now, free = max(now, end), free + held
        heapq.heappush(ends, (now + duration, wanted))
        free -= wanted
        starts.append(now)
    return starts


def easy(rows: Rows, gpus: int) -> list[float]:
    """FIFO, but a job may pass if it does not delay the first that waits."""
    starts = [0.0] * len(rows)
    events = [submitted for submitted, _, _ in rows]  # in order, so a heap
    running: list[tuple[float, int]] = []
    queue: list[int] = []
    coming = 0
    while events:
        now = heapq.heappop(events)
        while coming < len(rows) and rows[coming][0] <= now:
            queue.append(coming)
            coming += 1
        running = [(end, held) for end, held in running if end > now]
        free = gpus - sum(held for _, held in running)
        reserved, spare = None, 0  # when the first that waits can start, and what is left then
        for k in list(queue):
            _, duration, wanted = rows[k]
            is_short = reserved is None or now + duration <= reserved
            if wanted <= free and (is_short or wanted <= spare):
                free, spare = free - wanted, spare if is_short else spare - wanted
                running.append((now + duration, wanted))
                heapq.heappush(events, now + duration)
                queue.remove(k)
                starts[k] = now
            elif reserved is None:
                at = {end: free + sum(g for e, g in running if e <= end) for end, _ in running}
                reserved = min(end for end, left in at.items() if left >= wanted)
                spare = at[reserved] - wanted
    return starts


PROGRAM: dict[str, Callable[[Rows, int], list[float]]] = {"fifo": fifo, "easy": easy}


def means(rows: Rows, starts: Iterable[float]) -> dict[str, float]:
    runs = [(s, begin, begin + d) for (s, d, _), begin in zip(rows, starts, strict=True)]
    return {
        "mean_waiting": sum(begin - s for s, begin, _ in runs) / len(runs),
        "mean_completion": sum(end - s for s, _, end in runs) / len(runs),
        "makespan": max(end for _, _, end in runs) - min(s for s, _, _ in runs),
    }


# --- rows of the files, read with csv alone ------------------------------------------------------


def cells(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def ordered(rows: Iterable[tuple[float, float, int]]) -> Rows:
    return sorted(rows, key=lambda row: row[0])


def epoch(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime(2000, 1, 1)).total_seconds()


def philly_rows(path: Path, cluster: str) -> Rows:
    return ordered(
        (epoch(row["timestamp"]), float(row["duration"]), int(float(row["num_gpus"])))
        for row in cells(path)
        if row["cluster"] == cluster
    )


def pods_that_ran(path: Path) -> list[dict[str, str]]:
    ran = [row for row in cells(path) if row["scheduled_time"] and int(row["num_gpu"]) > 0]
    return sorted(ran, key=lambda row: float(row["creation_time"]))


def pod_rows(pods: list[dict[str, str]]) -> Rows:
    return [
        (
            float(row["creation_time"]),
            float(row["deletion_time"]) - float(row["scheduled_time"]),
            int(row["num_gpu"]),
        )
        for row in pods
    ]


def sacct_rows(path: Path) -> Rows:
    return ordered(
        (
            epoch(row["Submit"]),
            float(row["ElapsedRaw"]),
            int(row["AllocTRES"].partition("gres/gpu=")[2]),
        )
        for row in cells(path, "|")
        if "gres/gpu=" in row["AllocTRES"]
        and row["State"] != "RUNNING"
        and float(row["ElapsedRaw"]) > 0
    )


def swf_rows(path: Path) -> Rows:
    with path.open(encoding="utf-8") as stream:
        rows = [line.split() for line in stream if not line.startswith(";")]
    return ordered((float(r[1]), float(r[3]), int(r[4])) for r in rows if float(r[3]) > 0)


# --- files that are made here --------------------------------------------------------------------


def made(count: int = 40) -> list[tuple[int, int, int, int]]:
    """Number, submission, duration and GPUs of jobs that crowd a cluster of 8 GPUs."""
    return [(k, 97 * k % 1201, 300 + 211 * k % 3203, 1 + 5 * k % 8) for k in range(1, count + 1)]


def sacct_file(directory: Path) -> Path:
    day = "2024-03-01T08:{0:02}:{1:02}"
    lines = [
        f"{k}|ann|gpu|{day.format(*divmod(s, 60))}|{d}|COMPLETED|cpu=8,node=1,gres/gpu={g}"
        for k, s, d, g in made()
    ]
    path = directory / "sacct.txt"
    path.write_text(SACCT.format(rows="\n".join(lines)), encoding="utf-8")
    return path


def swf_file(directory: Path) -> Path:
    rows = [f"{k} {s} 5 {d} {g} -1 -1 {g} 9999 -1 1 3 1 -1 1 -1 -1 -1" for k, s, d, g in made()]
    rows.append("99 3 -1 -1 4 -1 -1 4 9999 -1 5 3 1 -1 1 -1 -1 -1")  # cancelled before it ran
    path = directory / "log.swf"
    path.write_text("; Computer: made here\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


# --- the toolkit ---------------------------------------------------------------------------------


def replayed(run: Any, path: Path, servers: int, gpus: int, *options: object) -> Any:
    sizes = ("--servers", servers, "--gpus-per-server", gpus)
    code, out, err = run("replay", path, *sizes, "--policies", "fifo,easy", "--json", *options)
    assert code == 0, err
    return json.loads(out), err


def assert_agree(found: Any, rows: Rows, gpus: int) -> None:
    assert found["jobs"] == len(rows)
    for name, program in PROGRAM.items():
        expected = means(rows, program(rows, gpus))
        assert expected["mean_waiting"] > 0  # or nothing would be compared
        figures = found["policies"][name]
        assert figures["finished"] == len(rows)
        assert {key: figures[key] for key in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.skipif(not PHILLY.exists(), reason=f"no Philly trace at {PHILLY}")
def test_a_virtual_cluster_of_philly(run: Any, tmp_path: Path) -> None:
    cluster = "0e4a51"
    rows = philly_rows(PHILLY, cluster)
    found, err = replayed(run, PHILLY, 8, 8, "--virtual-cluster", cluster)
    assert_agree(found, rows, 64)
    kept = f"kept {len(rows)} of 82247 jobs: {82247 - len(rows)} by virtual_cluster ({cluster})"
    unit = "durations read as seconds; median 1144 s (--duration-unit)"
    assert err == f"read as philly (--format)\n{unit}\n{kept}\n"
    path = tmp_path / "all.json"
    given = ("--virtual-cluster", cluster, "--all")
    code, _, err = run("import", "philly", PHILLY, *given, "-o", path)
    assert code == 0
    assert err.splitlines()[:2] == [unit, kept]
    described = json.loads(run("describe", path, "--json")[1])
    assert (described["jobs"], described["kept"]) == (len(rows), kept)
    assert described["can_finish"] == len(rows)


@pytest.mark.skipif(not PODS.exists(), reason=f"no openb trace at {PODS}")
def test_the_pods_of_openb(run: Any) -> None:
    ran = pods_that_ran(PODS)
    kept = ran[:1500]
    found, err = replayed(run, PODS, 2, 8, "--max-jobs", 1500)
    assert_agree(found, pod_rows(kept), 16)
    everyone = len(cells(PODS))
    never = sum(not row["scheduled_time"] for row in cells(PODS))
    without = everyone - never - len(ran)
    assert err.splitlines()[-1] == (
        f"kept 1500 of {everyone} jobs: {never} never scheduled, {without} without GPUs, "
        f"{len(ran) - 1500} by max_jobs (1500)"
    )
    shares = sum(int(row["gpu_milli"]) < 1000 for row in kept)
    assert f"jobs with a part of a GPU, which count with the next whole number: {shares}" in err


@pytest.mark.parametrize(
    ("kind", "make", "read", "left_out"),
    [
        ("slurm", sacct_file, sacct_rows, "1 never ran, 1 has not ended"),
        ("swf", swf_file, swf_rows, "1 never ran"),
    ],
)
def test_a_file_through_all_commands(
    run: Any,
    tmp_path: Path,
    kind: str,
    make: Callable[[Path], Path],
    read: Callable[[Path], Rows],
    left_out: str,
) -> None:
    path = make(tmp_path)
    rows = read(path)
    assert len(rows) == 40
    found, err = replayed(run, path, 1, 8)
    assert_agree(found, rows, 8)
    assert left_out in err
    instance = tmp_path / "all.json"
    given = ("--min-gpus", 1, "--slot-seconds", 600, "--worker-servers", 8)
    code, _, err = run("import", kind, path, "--all", *given, "-o", instance)
    assert code == 0
    kept = next(line for line in err.splitlines() if line.startswith("kept"))
    assert kept.startswith("kept 40 of ")
    assert left_out in kept
    chosen = next(line for line in err.splitlines() if line.startswith("chosen to fit: "))
    assert "--horizon" in chosen
    assert "--worker-servers" not in chosen  # it was given
    described = json.loads(run("describe", instance, "--json")[1])
    assert (described["jobs"], described["can_finish"], described["kept"]) == (40, 40, kept)
    assert described["servers"]["worker"] == 8
    code, out, err = run("ratio", instance, "--json", "--work-limit", 1, "--gap", "inf")
    assert code in (0, 3), err
    assert json.loads(out)["jobs"] == 40
    assert all(note in err for note in described["notes"])
