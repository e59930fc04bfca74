"""Numbers of the pages for users, and their proofs (page_numbers)."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from typing import Any

import numpy as np

import oasis
from experiments import CompetitiveRatio, competitive_ratio
from experiments.sweep import sweep_config
from oasis.model.job import Job
from oasis.model.records import parse
from oasis.workloads import PRESETS
from oasis.workloads.presets import DECAY, MIX, STEPS_PER_SECOND
from tests.packaging.commands import EXAMPLE, JOB
from tests.packaging.page_numbers import ROOT, spelled, text_of

GALLERY = [path for path in sorted((ROOT / "docs/gallery").glob("*.md")) if path.stem != "index"]


def has(page: str, pattern: str) -> bool:
    """Return whether a cell of a page, or a file, has what a sentence says of it."""
    return re.search(pattern, text_of(page)) is not None


def python_version() -> str:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    return str(project["requires-python"]).removeprefix(">=")


# --- the shipped example ------------------------------------------------------------------------


@cache
def congested() -> oasis.Instance:
    return oasis.read(EXAMPLE)


@cache
def solved() -> CompetitiveRatio:
    """OASiS and the proven optimum of the shipped example."""
    return competitive_ratio(congested(), time_limit=300)


@cache
def late_job(priority: float | None = None) -> Job:
    """The job of the tutorial, with the priority of the file or another."""
    data = json.loads(JOB.read_text(encoding="utf-8"))
    if priority is not None:
        data["utility"]["priority"] = priority
    return parse(oasis.Job, data)


@cache
def quoted(priority: float | None = None) -> oasis.Decision:
    """Answer of `oasis quote` for that job."""
    job = late_job(priority)
    scheduler = oasis.OASiS.from_instance(congested())
    for known in congested().jobs_by_arrival():
        if known.arrival <= job.arrival:
            scheduler.submit(known)
    return scheduler.quote(job)


def refused() -> oasis.Rejection:
    """Rejection of the tutorial's job."""
    found = quoted().rejection
    assert found is not None
    return found


def cheapest_slot() -> int:
    """The slot in which its cheapest schedule ends; every schedule costs more than it is worth."""
    slot = refused().smallest_utility_completion
    worth = float(late_job().utility(slot - late_job().arrival))
    assert refused().smallest_utility > worth
    assert (refused().utility_factor or 0) > 1
    return slot


def tutorial_sizes() -> tuple[str | int, ...]:
    cluster = congested().cluster
    sides = (len(cluster.worker_ids), len(cluster.ps_ids))
    return (len(congested().jobs), congested().horizon, f"{cluster.slot_seconds / 60:g}", *sides)


def taken() -> tuple[set[str], set[str]]:
    """The jobs that OASiS takes, and those of the optimum."""
    online = {decision.job_id for decision in solved().run.decisions if decision.admitted}
    return online, set(solved().offline.schedules)


# --- the gallery --------------------------------------------------------------------------------

FIRST, OWN = "docs/gallery/first-ratio.md", "docs/gallery/own-policy.md"


def lines_of_the_policy() -> int:
    (written,) = re.findall(
        r"^class DensestFirst.*?(?=^```)", text_of(OWN), re.DOTALL | re.MULTILINE
    )
    return sum(bool(line.strip()) for line in written.splitlines())


# --- choosing utilities, the glossary -----------------------------------------------------------


# --- the command line ---------------------------------------------------------------------------


def seconds(value: float) -> str:
    return spelled(int(value))


EXAMPLE_PATH = EXAMPLE.relative_to(ROOT).as_posix()

# --- random workloads ---------------------------------------------------------------------------

PAPER, TESTBED = PRESETS["paper"], PRESETS["testbed"]


def sizes_of(name: str) -> tuple[str | int, ...]:
    made = PRESETS[name]
    return (made.jobs, made.worker_servers, made.ps_servers, made.horizon, f"{made.slot_seconds:g}")


def ends(*ranges: tuple[float, ...]) -> tuple[str, ...]:
    """All numbers of some ranges."""
    return tuple(f"{value:g}" for each in ranges for value in each)


def demand(group: str, *names: str) -> tuple[str, ...]:
    return ends(*(getattr(made, group)[name] for made in (PAPER, TESTBED) for name in names))


def pairs() -> tuple[str, ...]:
    """The numbers of chunks and mini-batches."""
    return ends(
        PAPER.chunks, PAPER.minibatches, *zip(TESTBED.chunks, TESTBED.minibatches, strict=True)
    )


def times_as_fast(model: str) -> float:
    """A V100 beside a K80."""
    slow, _, fast = STEPS_PER_SECOND[model]
    return fast / slow


def demanded_of_kinds() -> float:
    """The least that instances of the preset ask for, each job in its fastest form, of all GPUs."""
    asked = []
    for seed in range(5):
        made = oasis.generate("kinds", seed=seed)
        work = sum(min(form.work(made.slot_seconds) for form in job.in_forms) for job in made.jobs)
        asked.append(work / (4 * len(made.cluster.worker_ids) * made.horizon))
    return min(asked)


def decays() -> tuple[str, ...]:
    none, sensitive, critical = DECAY
    shares = [f"{100 * share:g}" for share in MIX]
    assert none == (0.0, 0.0)
    return ("0", shares[0], *ends(sensitive), shares[1], *ends(critical), shares[2])


def testbed_machines() -> tuple[str, ...]:
    made = oasis.generate("testbed", seed=0).cluster
    worker, ps = made.worker_servers[0].capacity, made.ps_servers[0].capacity
    gpus = sum(server.capacity["gpu"] * server.count for server in made.worker_servers)
    assert gpus == 4
    assert len(made.worker_ids) == 7
    shown = (worker["cpu"], worker["memory_gb"], worker["storage_gb"])
    return (
        *ends(shown), "four", "seven", *ends((ps["cpu"], ps["memory_gb"])),
        f"{ps['storage_gb']:,.0f}",
    )  # fmt: skip


@cache
def usual_length() -> float:
    """Median duration at full parallelism in slots, with every parameter as printed."""
    made = oasis.generate("paper", jobs=2000, seed=0)
    each = [job.epochs * job.minibatches * job.minibatch_slots(3600.0) for job in made.jobs]
    return float(np.median(each))


# --- plots, sweeps, the library -----------------------------------------------------------------


def seeds_of(given: Any = None) -> list[int]:
    """The seeds of a sweep whose file says this of them, or nothing."""
    grid = {"instances": [{"preset": "testbed"}], "policies": [{"name": ["oasis"]}]}
    return list(sweep_config(grid if given is None else grid | {"seeds": given}).seeds)


def first_and_last(seeds: list[int]) -> tuple[int, int]:
    """The first and the last of seeds that follow one another."""
    assert seeds == list(range(seeds[0], seeds[-1] + 1))
    return seeds[0], seeds[-1]
