"""Machines as a user names them: ``16x8``, or a CSV file with a row for each."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from oasis.model.errors import InputError, located_at
from oasis.traces.table import read_source

COUNTED = re.compile(r"(\d+)\s*[xX*]\s*(\d+)")
MOST_MACHINES = 1_000_000
# In any letters; the first that there is. The last two are Philly's and Alibaba's.
GPU_COLUMNS = ("gpus", "gpu", "num_gpus", "number of gpus", "cap_gpu")
COUNT_COLUMNS = ("count", "machines")


def machine_list(text: str) -> tuple[int, ...]:
    """Read the GPUs of each machine from ``2x8,1x4`` (machines x GPUs) or a CSV file's columns."""
    parts = [COUNTED.fullmatch(part.strip()) for part in text.split(",")]
    if all(parts):
        return _listed([(int(part[1]), int(part[2])) for part in parts if part])
    if not text or (not Path(text).exists() and text != "-"):  # the empty path is this folder
        raise InputError("", "expected such as 16x8, or a file with a column gpus", text)
    with located_at(source=text):
        return _listed(_counts(text))


def _listed(counts: list[tuple[int, int]]) -> tuple[int, ...]:
    total = sum(count for count, gpus in counts if gpus)
    if not 1 <= total <= MOST_MACHINES:
        raise InputError("", f"expected 1..{MOST_MACHINES:,} machines with GPUs, got {total:,}")
    return tuple(gpus for count, gpus in counts if gpus for _ in range(count))


def _counts(file: str) -> list[tuple[int, int]]:
    rows = csv.DictReader(read_source(file).lines)
    names = {name.strip().casefold(): name for name in rows.fieldnames or ()}
    column = next((names[name] for name in GPU_COLUMNS if name in names), None)
    if column is None:
        got = ", ".join(names) or "an empty file"
        raise InputError("", f"expected one of the columns {', '.join(GPU_COLUMNS)}, got {got}")
    many = next((names[name] for name in COUNT_COLUMNS if name in names), None)
    counts = []
    for line, row in enumerate(rows, start=2):
        pair = []
        for name in (many, column):
            text = "1" if name is None else (row.get(name) or "").strip()
            if not re.fullmatch(r"\d+(\.0*)?", text):
                raise InputError(f"line {line}, {name}", "expected a whole number", text)
            pair.append(int(float(text)))
        counts.append((pair[0], pair[1]))
    return counts


def machines_text(machines: Sequence[int]) -> str:
    """Describe machines in a few words, such as ``24 GPUs (2 x 8, 2 x 4)``."""
    counts = {size: list(machines).count(size) for size in dict.fromkeys(machines)}
    parts = [f"{count} x {size}" for size, count in counts.items()]
    shown = ", ".join(parts[:4]) + (", ..." if len(parts) > 4 else "")
    return f"{sum(machines):,} GPUs ({shown})"
