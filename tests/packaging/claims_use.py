"""Numbers of the pages for users, and their proofs (page_numbers)."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from typing import Any

import numpy as np
from rich.console import Console

import oasis
from experiments import CompetitiveRatio, competitive_ratio
from experiments.cli import console, exit_codes, progress
from experiments.cli.commands import sweep as sweep_command
from experiments.cli.commands import whatif as whatif_command
from experiments.cli.options import limits_of
from experiments.evaluation import intervals, whatif_tables
from experiments.evaluation.limits import read_share
from experiments.evaluation.machines import machine_list
from experiments.figures.oasis import FIG8
from experiments.library import Library
from experiments.library.store import BETTER
from experiments.plotting import canvas
from experiments.sweep import Dask, sweep_config
from oasis.model.instance_file import job_from_dict
from oasis.model.job import Job
from oasis.model.validation import LARGEST_AMOUNT
from oasis.solvers import PROOF
from oasis.solvers.budget import LEAST_PROGRESS
from oasis.traces import PlainOptions
from oasis.workloads import PRESETS
from oasis.workloads import presets as machines
from oasis.workloads.presets import (
    DECAY,
    KINDS,
    KINDS_SHAPE,
    MIX,
    PRIORITY,
    STEPS_PER_SECOND,
)
from offline.solve import LONG_COUNTS, SHORT, AutoParams
from tests.packaging.commands import EXAMPLE, JOB
from tests.packaging.figure_rows import row
from tests.packaging.page_numbers import ROOT, Claim, fixed, spelled, text_of

GALLERY = [path for path in sorted((ROOT / "docs/gallery").glob("*.md")) if path.stem != "index"]
NAMES = (
    *("index", "getting-started", "choosing", "glossary", "cli", "file-format", "kinds"),
    *("workloads", "what-if", "faq", "coming-from", "troubleshooting", "release-notes"),
    *("own-policy", "plots", "sweeps", "library", "api", "gallery/index"),
)
PAGES: tuple[str, ...] = (
    "README.md",
    *(f"docs/{name}.md" for name in NAMES),
    *(f"docs/gallery/{path.name}" for path in GALLERY),
)


def has(page: str, pattern: str) -> bool:
    """Return whether a cell of a page, or a file, has what a sentence says of it."""
    return re.search(pattern, text_of(page)) is not None


def python_version() -> tuple[str]:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    return (project["requires-python"].removeprefix(">="),)


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
    return job_from_dict(data)


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


TUTORIAL = "docs/getting-started.md"
WHAT_IF = "docs/what-if.md"

START = [
    *(
        Claim(page, "Python @ or newer", python_version)
        for page in ("README.md", "docs/index.md", TUTORIAL)
    ),
    *(
        Claim(page, sentence, lambda: (spelled(len(GALLERY)),))
        for page, sentence in (("README.md", "of @ short notebooks to download"),)
    ),
    Claim("docs/gallery/index.md", "@ short notebooks.", lambda: (spelled(len(GALLERY)).title(),)),
    Claim("docs/index.md", "of @ instances with the best", lambda: (len(Library().records()),)),
    Claim(
        "docs/index.md",
        "{term}`competitive ratio` of @ with its proof: no schedule of these @ jobs earns more "
        "than @ times",
        lambda: (
            fixed(solved().upper, 2),
            spelled(len(congested().jobs)),
            fixed(solved().upper, 2),
        ),
        lambda: solved().proven,
    ),
    Claim(
        TUTORIAL,
        """congested {term}`instance`: @ {term}`jobs <job>` over @ {term}`slots <slot>` of @
        minutes, for @ machines that host {term}`workers <worker>` and @ that host""",
        tutorial_sizes,
    ),
    Claim(TUTORIAL, "schedule for all @ jobs", lambda: (spelled(len(congested().jobs)),)),
    Claim(TUTORIAL, "and the exit code is @", lambda: (exit_codes.LIMIT,)),
    Claim(TUTORIAL, "The cheapest schedule completes in slot @ and", lambda: (cheapest_slot(),)),
    Claim(TUTORIAL, "grow by a factor of @,", lambda: (fixed(refused().utility_factor or 0.0, 2),)),
    Claim(
        TUTORIAL,
        "so a job worth three times as much is admitted:",
        holds=lambda: (
            has(TUTORIAL, '"priority": 20.0/"priority": 60.0')
            and quoted(60.0).admitted
            and not quoted().admitted
        ),
    ),
]

# --- the gallery --------------------------------------------------------------------------------

FIRST, OWN = "docs/gallery/first-ratio.md", "docs/gallery/own-policy.md"
OWN_TRACE = "docs/gallery/own-trace.md"


def lines_of_the_policy() -> int:
    (written,) = re.findall(
        r"^class DensestFirst.*?(?=^```)", text_of(OWN), re.DOTALL | re.MULTILINE
    )
    return sum(bool(line.strip()) for line in written.splitlines())


NOTEBOOKS = [
    Claim(FIRST, "@ training jobs", lambda: (spelled(len(congested().jobs)).title(),)),
    Claim(FIRST, "knew all @ jobs", lambda: (spelled(len(congested().jobs)),)),
    Claim(
        FIRST,
        "The optimum turns away other jobs than OASiS does",
        holds=lambda: not taken()[0] <= taken()[1],
    ),
    Claim(
        "docs/gallery/index.md", "a policy in @ lines", lambda: (spelled(lines_of_the_policy()),)
    ),
    Claim(OWN, "notebook writes one in @ lines", lambda: (spelled(lines_of_the_policy()),)),
    Claim(
        "docs/gallery/certify.md",
        "With @ workers too many",
        lambda: ("fifty",),
        lambda: has("docs/gallery/certify.md", re.escape("rows[0, 2] += 50")),
    ),
    Claim(
        "docs/gallery/certify.md",
        '`{"schedules": [{"job_id": ID, "workers": ROWS, "ps": ROWS}]}` and use `oasis verify',
        holds=lambda: (
            {tuple(schedule.to_dict()) for schedule in solved().offline.schedules.values()}
            == {("job_id", "workers", "ps")}
        ),
    ),
    Claim(
        "docs/gallery/price-of-commitment.md",
        "## @ promises",
        lambda: ("Four",),
        lambda: (
            len(
                re.findall(
                    r"oasis\.(?:OASiS|Recourse)\b", text_of("docs/gallery/price-of-commitment.md")
                )
            )
            == 4
        ),
    ),
    Claim(
        "docs/gallery/price-of-commitment.md",
        "@ seeds are few",
        lambda: ("Three",),
        lambda: has("docs/gallery/price-of-commitment.md", r"for seed in range\(3\)"),
    ),
    Claim("docs/gallery/sweep-on-dask.md", "with @ % confidence", lambda: (confidence(),)),
    Claim(
        OWN_TRACE,
        "and @ machines have @ GPUs each",
        lambda: ("five", spelled(PlainOptions().gpus_per_server)),
        lambda: has(OWN_TRACE, "worker_servers=5,"),
    ),
    Claim(
        OWN_TRACE,
        "at most @ jobs of @ to @ GPUs and half an hour to @ hours are taken: @ with one GPU",
        lambda: (
            PlainOptions().max_jobs,
            PlainOptions().min_gpus,
            PlainOptions().max_gpus,
            spelled(int(PlainOptions().max_duration / 3600)),
            spelled(len(range(0, 16, 4))),
        ),
        lambda: (
            PlainOptions().min_duration == 1800.0
            and has(OWN_TRACE, r"range\(16\)")
            and has(OWN_TRACE, r"2 \*\* \(k % 4\)")
        ),
    ),
]


def confidence() -> str:
    return f"{100 * intervals.CONFIDENCE:g}"


# --- choosing utilities, the glossary -----------------------------------------------------------

CHOOSING = "docs/choosing.md"
GLOSSARY = "docs/glossary.md"
CHOICES = [
    Claim(
        CHOOSING,
        "A job of @ GPU-hours worth @ gives way to @ jobs of @ GPU-hours worth @ each",
        lambda: ("400", "100", "ten", "40", "20"),
        lambda: 400 == 10 * 40 and 100 < 10 * 20,
    ),
    Claim(
        CHOOSING,
        "A decay of more than about @ in a slot is a deadline in all but name",
        holds=lambda decay: (
            oasis.Sigmoid(1.0, decay, 10.0)(9) > 0.99 and oasis.Sigmoid(1.0, decay, 10.0)(11) < 0.01
        ),
    ),
    Claim(
        CHOOSING,
        "@ jobs of @ to @ hours in slots of @ lengths",
        lambda: ("sixteen", "0.6", "3.2", "four"),
        lambda: (
            has(CHOOSING, r"uniform\(0\.6, 3\.2, size=16\)")
            and has(CHOOSING, r"in \(15, 30, 60, 120\)")
        ),
    ),
    Claim(
        CHOOSING,
        """At least @ times what a change costs | If starting a job takes a minute, a slot of @
        minutes loses a tenth""",
        lambda: ("ten", "ten"),
    ),
    Claim(GLOSSARY, "The paper's jobs have @.", lambda: (congested().jobs[0].min_workers,)),
    Claim(GLOSSARY, "to one part in a million", holds=lambda: PROOF == 1e-6),
]

# --- the command line ---------------------------------------------------------------------------

CLI = "docs/cli.md"
FIELD = "docs/file-format.md"
TROUBLE = "docs/troubleshooting.md"


def seconds(value: float) -> str:
    return spelled(int(value))


COMMANDS = [
    Claim(WHAT_IF, "the fewest machines of @ GPUs that hold", lambda: (str(whatif_command.SIZE),)),
    Claim(
        WHAT_IF,
        "less than @ % of the GPUs are in use, or where jobs take more than @ times",
        lambda: (f"{100 * whatif_tables.LEAST_USE:g}", f"{whatif_tables.MOST_SLOWDOWN:g}"),
    ),
    Claim(
        WHAT_IF,
        "here on @ machines of @ GPUs.",
        lambda: (len(machine_list("16x8")), machine_list("16x8")[0]),
    ),
    Claim(CLI, "once they have taken @ seconds", lambda: (seconds(console.PATIENCE_SECONDS),)),
    Claim(CLI, "at most one line a second", holds=lambda: progress.LOG_SECONDS == 1.0),
    Claim(CLI, "report every @ seconds", lambda: (seconds(sweep_command.LOG_SECONDS),)),
    Claim(CLI, "by less than a thousandth of itself", holds=lambda: LEAST_PROGRESS == 1e-3),
    Claim(CLI, "| @ | done |", lambda: (exit_codes.DONE,)),
    Claim(CLI, "| @ | bad usage", lambda: (exit_codes.BAD_INPUT,)),
    Claim(CLI, "| @ | the result is printed but incomplete", lambda: (exit_codes.LIMIT,)),
    Claim(CLI, "`5%` or `@` |", lambda: (f"{read_share('5%'):g}",)),
    Claim(CLI, "default @ s |", lambda: (f"{limits_of(None, None)['time_limit']:g}",)),
    Claim(CLI, "the terminal, or @ columns elsewhere", lambda: (Console(_environ={}).width,)),
    Claim(CLI, "| @ | some cells of a sweep", lambda: (exit_codes.FAILED_CELLS,)),
    Claim(CLI, "| @ | interrupted without", lambda: (exit_codes.INTERRUPTED,)),
    Claim(CLI, "ends the command with exit code @", lambda: (exit_codes.BAD_INPUT,)),
    Claim(CLI, "draw at random, with @ % intervals", lambda: (confidence(),)),
    Claim(CLI, "size at most @, such as ten jobs", lambda: (AutoParams().compact_size,)),
    Claim(CLI, "counts above @, such as 400 jobs", lambda: (f"{LONG_COUNTS:,}",)),
    Claim(CLI, "counts above @, such as a hundred", lambda: (f"{AutoParams().counts_size:,}",)),
    Claim(CLI, "above @ s, or none", lambda: (f"{SHORT:g}",)),
    Claim(
        FIELD,
        "| `version` | @ | of the format",
        lambda: (1,),
        lambda: has(EXAMPLE_PATH, '"version": 1,'),
    ),
    Claim(
        FIELD,
        "or none; default @ |",
        lambda: (late_job().min_workers,),
    ),
    Claim(FIELD, "go up to $10^{@}$", lambda: (f"{np.log10(LARGEST_AMOUNT):.0f}",)),
    Claim(FIELD, "it is one line, and exit code @", lambda: (exit_codes.BAD_INPUT,)),
    Claim(TROUBLE, "| exit code @ and one line |", lambda: (exit_codes.BAD_INPUT,)),
    Claim(TROUBLE, "| exit code @ | a limit was reached", lambda: (exit_codes.LIMIT,)),
    Claim(TROUBLE, "exit code @ | a fault of this project", lambda: (exit_codes.BUG,)),
]
EXAMPLE_PATH = EXAMPLE.relative_to(ROOT).as_posix()

# --- random workloads ---------------------------------------------------------------------------

WORKLOADS = "docs/workloads.md"
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


DRAWN = [
    Claim(WORKLOADS, "| `paper` | @ | @ + @ | @ | @ s |", lambda: sizes_of("paper")),
    Claim(
        WORKLOADS,
        "| `calibrated` (default) | @ | @ + @ | @ | @ s |",
        lambda: sizes_of("calibrated"),
    ),
    Claim(WORKLOADS, "| `testbed` | @ | @ + @ | @ | @ s |", lambda: sizes_of("testbed")),
    Claim(
        WORKLOADS,
        "| `testbed-observed` | @ | @ + @ | @ | @ s |",
        lambda: sizes_of("testbed-observed"),
    ),
    Claim(
        WORKLOADS,
        "The jobs of `testbed` with @ of their epochs",
        lambda: (f"{PRESETS['testbed-observed'].epochs_kept:g}",),
    ),
    Claim(
        WORKLOADS,
        "by the total utility of FIFO in Fig. 8 alone: @ for the published @",
        lambda: (f"{row('fig8', policy='fifo')['utility']:.0f}", str(FIG8["fifo"])),
    ),
    Claim(WORKLOADS, "| `kinds` | @ | @ + @ | @ | @ s |", lambda: sizes_of("kinds")),
    Claim(
        WORKLOADS,
        "Not of the paper. @ machines each with @ K80, P100 and V100",
        lambda: ("Three", spelled(int(KINDS_SHAPE[0]))),
        lambda: PRESETS["kinds"].worker_servers == 3 * len(KINDS),
    ),
    Claim(WORKLOADS, "so on), @ cores and @ GB, chosen", lambda: ends(KINDS_SHAPE[1:])),
    Claim(
        WORKLOADS,
        "targets are @-@ slots. Each job is one of @ models",
        lambda: (*ends(PRESETS["kinds"].target), spelled(len(STEPS_PER_SECOND))),
    ),
    Claim(
        WORKLOADS,
        "a V100 is @ times as fast as a K80 for ResNet-50, twice for A3C, and slower",
        lambda: (spelled(round(times_as_fast("ResNet-50"))),),
        lambda: (
            round(times_as_fast("A3C")) == 2
            and times_as_fast("recommendation") < 1
            and demanded_of_kinds() >= 0.95
        ),
    ),
    Claim(
        WORKLOADS,
        "| worker: GPU, cores, memory GB | @-@, @-@, @-@ | @-@, @-@, @-@ |",
        lambda: demand("worker", "gpu", "cpu", "memory_gb"),
    ),
    Claim(
        WORKLOADS,
        "| parameter server: cores, memory GB | @-@, @-@ | @-@, @-@ |",
        lambda: demand("ps", "cpu", "memory_gb"),
    ),
    Claim(
        WORKLOADS,
        "of a PS (Gbit/s) | @-@, @-@ | @-@, @-@ |",
        lambda: ends(
            *(
                ends_
                for made in (PAPER, TESTBED)
                for ends_ in (made.worker_bandwidth, made.ps_bandwidth)
            )
        ),
    ),
    Claim(WORKLOADS, "| epochs E_i | @-@ | @-@ |", lambda: ends(PAPER.epochs, TESTBED.epochs)),
    Claim(WORKLOADS, "M_i | @-@ and @-@ | @ and @, or @ and @ |", pairs),
    Claim(
        WORKLOADS,
        "| gradients e_i (MB) | @-@ | @, @, @, @, @, @ (AlexNet,",
        lambda: ends(PAPER.gradient_mb, TESTBED.gradient_mb),
    ),
    Claim(WORKLOADS, "| tau_i (slots) | @-@ |", lambda: ends(PAPER.minibatch_time)),
    Claim(
        WORKLOADS,
        "| gamma1, gamma3 | @-@, @-@ slots | @-@, @-@ slots |",
        lambda: ends(PRIORITY, PAPER.target, PRIORITY, TESTBED.target),
    ),
    Claim(WORKLOADS, "| gamma2 | @ for @ % of the jobs, @-@ for @ %, @-@ for @ % |", decays),
    Claim(
        WORKLOADS,
        "| machine bandwidth (Gbit/s) | @-@ | @ (the dual-port",
        lambda: ends(machines.SERVER_BANDWIDTH_GBPS, (machines.TESTBED_BANDWIDTH_GBPS,)),
    ),
    Claim(
        WORKLOADS,
        """Worker machines of the testbed have @ cores, @ GB and @ GB of storage, @ of the @
        with one GPU; the PS machines have @ cores, @ GB and @ GB""",
        testbed_machines,
    ),
    Claim(
        WORKLOADS,
        "@-@ GB per worker and PS as printed",
        lambda: ends(PAPER.worker["storage_gb"]),
        lambda: (
            PAPER.worker["storage_gb"] == PAPER.ps["storage_gb"] == TESTBED.worker["storage_gb"]
        ),
    ),
    Claim(WORKLOADS, "@ GB on every simulated machine", lambda: (f"{machines.STORAGE_GB:,.0f}",)),
    Claim(
        WORKLOADS,
        "@ s (not published); the testbed's @ minutes are",
        lambda: (f"{PAPER.slot_seconds:g}", f"{TESTBED.slot_seconds / 60:g}"),
    ),
    Claim(
        WORKLOADS,
        """their median duration at full parallelism is about @ slots, and targets end at @.""",
        holds=lambda length, target: (
            abs(usual_length() / length - 1) < 0.05 and target == PAPER.target[1]
        ),
    ),
    Claim(
        WORKLOADS,
        "@ workers of @ GPUs each do not fit on @ machines",
        lambda: (PAPER.chunks[1], PAPER.worker["gpu"][1], PAPER.worker_servers),
    ),
    Claim(
        WORKLOADS,
        "@ minutes to @ hours are read as the shortest duration of a job, @ to @ slots",
        lambda: ends((TESTBED.duration[0] * 20, TESTBED.duration[1] * 20 / 60), TESTBED.duration),
        lambda: TESTBED.slot_seconds == 20 * 60,
    ),
    Claim(
        WORKLOADS,
        '("@ jobs arrive in the first @ slots")',
        lambda: (TESTBED.jobs, TESTBED.horizon - TESTBED.quiet_slots),
    ),
    Claim(
        WORKLOADS,
        "@ sevenths (rounded up) have a GPU",
        lambda: ("four",),
        lambda: machines.TESTBED_GPU_SHARE == 4 / 7,
    ),
]

# --- plots, sweeps, the library -----------------------------------------------------------------


def style_for_print(setting: str) -> tuple[str]:
    return (f"{canvas.PRINTED[setting]:g}",)


PLOTS, SWEEPS, LIBRARY = "docs/plots.md", "docs/sweeps.md", "docs/library.md"


def seeds_of(given: Any = None) -> list[int]:
    """The seeds of a sweep whose file says this of them, or nothing."""
    grid = {"instances": [{"preset": "testbed"}], "policies": [{"name": ["oasis"]}]}
    return list(sweep_config(grid if given is None else grid | {"seeds": given}).seeds)


def first_and_last(seeds: list[int]) -> tuple[int, int]:
    """The first and the last of seeds that follow one another."""
    assert seeds == list(range(seeds[0], seeds[-1] + 1))
    return seeds[0], seeds[-1]


RESULTS = [
    Claim(PLOTS, "with @ % intervals", lambda: (confidence(),)),
    Claim(PLOTS, "column of a page (@ inches;", lambda: (str(canvas.COLUMN),)),
    Claim(PLOTS, "letters of @ points", lambda: style_for_print("font.size")),
    Claim(PLOTS, "@ dots per inch", lambda: style_for_print("savefig.dpi")),
    Claim(SWEEPS, "for @ % confidence", lambda: (confidence(),)),
    Claim(SWEEPS, "more than a factor of @.", lambda: (f"{intervals.WIDEST:,.0f}",)),
    Claim(SWEEPS, "Default `[0]`.", holds=lambda: seeds_of() == [0]),
    Claim(SWEEPS, "`5` is the seeds @ to @;", lambda: first_and_last(seeds_of(5))),
    Claim(
        SWEEPS,
        "`{first = 3, count = 5}` is @ to @;",
        lambda: first_and_last(seeds_of({"first": 3, "count": 5})),
    ),
    Claim(SWEEPS, "The exit code is @ also without proofs", lambda: (exit_codes.DONE,)),
    Claim(SWEEPS, "go on, and the exit code is @.", lambda: (exit_codes.FAILED_CELLS,)),
    Claim(
        SWEEPS,
        "answers within @ seconds, the command fails",
        lambda: (seconds(Dask("").connect_seconds),),
    ),
    Claim(LIBRARY, "@ instances of the offline problem", lambda: (len(Library().records()),)),
    Claim(
        LIBRARY,
        "@ % time-insensitive, @ % sensitive, @ % critical jobs",
        lambda: [f"{100 * share:g}" for share in MIX],
    ),
    Claim(
        LIBRARY,
        "A slot is an hour in the presets `calibrated` and `paper`, @ minutes in `testbed`",
        lambda: ("twenty",),
        lambda: PAPER.slot_seconds == 3600 and TESTBED.slot_seconds == 20 * 60,
    ),
    Claim(LIBRARY, "by more than a billionth is refused", holds=lambda: BETTER == 1e-9),
    Claim(
        LIBRARY,
        "The tests do so with every twentieth instance",
        holds=lambda: has("tests/unit/experiments/test_library_shipped.py", r"\[::20\]"),
    ),
]

CLAIMS: list[Claim] = [*START, *NOTEBOOKS, *CHOICES, *COMMANDS, *DRAWN, *RESULTS]

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    WHAT_IF: {
        "With the 40 jobs that come along": "its output says how many",
        "load x 1.5 | The same jobs, with the times between submissions divided by 1.5": (
            "a definition"
        ),
    },
    "docs/faq.md": {
        "on a million jobs": "measured by `python -m tests.benchmarks.million`",
        "with thousands of machines": "docs/benchmarks/search.md has ten thousand",
        "some dozens of competing jobs": "docs/benchmarks/offline.md has the solves",
    },
    "docs/index.md": {"arXiv 1801.00936": "the number of a paper", "INFOCOM\n  2018": "a year"},
    TUTORIAL: {
        "1 would be perfect": "what a ratio is",
    },
    CHOOSING: {
        "not six.": "advice",
        "a priority of a billion": "an example, not a result",
        "| Between 10 and 300 slots to the horizon |": "advice; how-long has what was measured",
    },
    GLOSSARY: {"has delay 0": "a definition", "It is 1 at best": "what a ratio is"},
    CLI: {
        "such as ten jobs on six servers with eight slots each": "an example",
        "and exit code 3. `skipped` under": "an exit code",
        "one with AVX-512": "the name of an instruction set",
        "such as 400 jobs over 300 slots": "an example",
        "such as a hundred jobs over 300 slots": "an example",
        "would reach below 0 is": "what a utility cannot be",
        "`--work-limit` | `20` |": "an example",
        "| 1 | a bug": "what Python ends with after a traceback",
        "if not 0, completion times": "none",
    },
    FIELD: {
        "slots are 0 to $T - 1$": "a definition",
        "0 where left out": "a definition; test_instance_file reads such servers",
        "of $10^6$ bytes": "a unit",
        "4 GPUs, 2 hours, worth 50": "an example",
        "its `gradient_mb` is 0": "test_job refuses others",
        "| integer, 1 to `chunks`": "the range; an error of the page's table is outside it",
        "the deadline, then 0": "a definition",
        "`form`, unless that is 0": "a definition",
    },
    WORKLOADS: {
        "ResNet-50/101/152, VGG-11": "names of networks",
        "dual-port 10 GbE card": "the paper's",
        "GPUs of three kinds": "the claim of their names",
        "K80, P100 and V100": "names of GPUs",
        '`labels: {"gpu": "k80"}`': "a name",
        "relative to a P100": "a name",
        "OSDI 2020": "a year",
        "for ResNet-50, twice for A3C": "names of networks",
    },
    SWEEPS: {
        "such as a utility below 0": "what a utility cannot be",
        "`5` is the seeds": "the claim of its seeds",
    },
    "docs/own-policy.md": {"`job.utility` is 1 at": "a definition; test_policy_check looks at it"},
    "docs/gallery/own-trace.md": {"above 100 %": "what a percentage is"},
}
