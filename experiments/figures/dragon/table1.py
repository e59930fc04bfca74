"""The twelve jobs of Table 1 on the testbed, under the default scheduler and both controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from experiments.figures.dragon.models import (
    BATCH,
    BATCH_BY_MODEL,
    DEFAULT,
    DRAGON,
    EXPOSED,
    EXPOSED_BY_MODEL,
    FIG6_FACTORS,
    FIG7,
    FIG8,
    LOCALITY,
    PARTS,
    POLICIES,
    RESTART,
    RIGID,
    TESTBED,
    by_policy,
    job,
    measure,
    use_by_time,
    workload,
)
from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    amount,
    bars,
    fraction,
    groups,
    half_widths,
    headings,
    label,
)
from experiments.plotting.canvas import SMALL, ink, line, paper, share_axes
from oasis.simulator import Workload

LETTERS = "RIIARAIRIAIA"
ASKED = (4, 4, 2, 2, 3, 2, 2, 1, 2, 2, 1, 1)
LEAST = (2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 1, 1)
MOST = 4
STEPS = (2800, 3600, 1000, 450, 2100, 1000, 2000, 2400, 2500, 800, 1000, 1200)
ARRIVALS = (0.0, 0.56, 2.53, 6.34, 7.58, 13.11, 19.01, 27.54, 34.56, 42.58, 47.58, 51.19)
EARLY = 5  # "the first 5 jobs was generated with a much shorter inter-arrival time"


def arrivals(seed: int | None) -> list[float]:
    """Times of arrival as Table 1 prints them, or drawn with the same mean gaps."""
    if seed is None:
        return list(ARRIVALS)
    rng = np.random.default_rng(seed)
    turn, last = ARRIVALS[EARLY - 1], ARRIVALS[-1]
    late = len(ARRIVALS) - EARLY
    gaps = [*rng.exponential(turn / (EARLY - 1), EARLY - 1)]
    gaps += [*rng.exponential((last - turn) / late, late)]
    return [0.0, *np.cumsum(gaps).round(2).tolist()]


def table1(
    seed: int | None = None,
    *,
    unit: float = 60.0,
    batch: int | Mapping[str, int] = BATCH,
    exposed: float = EXPOSED,
    rigid: bool = False,
) -> Workload:
    """The jobs of Table 1; without a seed as printed, with restarts of 50 s, else both are drawn.

    `unit`: seconds in the unit of arrivals; printed are seconds, read are minutes. `batch`: images
    in a step of one worker, also by model.
    """
    rng = np.random.default_rng([1, seed or 0])
    # The printed run is one run, so its restart is the middle of the printed range.
    restart = sum(RESTART) / 2 if seed is None else float(rng.uniform(*RESTART))
    rows = zip(LETTERS, ASKED, LEAST, STEPS, arrivals(seed), strict=True)
    batches = dict.fromkeys(LETTERS, batch) if isinstance(batch, int) else batch
    jobs = [
        job(f"job{k}", letter, round(unit * at, 3), size * count, (least, asked, MOST), size)
        for k, (letter, asked, least, count, at) in enumerate(rows, start=1)
        for size in (batches[letter],)
    ]
    return workload(TESTBED, jobs, restart, rigid=rigid, exposed=exposed)


# The printed times of arrival read as minutes and as seconds, and draws with the same mean gaps.
# The paper says seconds. But with 26 workers for 8 GPUs within 51 s hardly any job could start at
# once, as more than half did, and the axis of Fig. 8 is in minutes.
MINUTES, SECONDS, DRAWN = "printed, minutes", "printed, seconds", "drawn, minutes"
# Arrivals as printed, in minutes; calibrated with a batch for each model instead of one for all.
BY_MODEL = "batch by model"
STEP = 300.0  # seconds between the points of Fig. 8
JOBS = range(1, len(LETTERS) + 1)


def cases(seeds: int) -> list[Case]:
    """The readings of the printed arrivals, and the seeds, under each policy."""
    arrivals: list[tuple[str, int | None]] = [(MINUTES, None), (BY_MODEL, None), (SECONDS, None)]
    arrivals += [(DRAWN, seed) for seed in range(seeds)]
    return [
        {"arrivals": kind, "seed": seed, "policy": policy}
        for kind, seed in arrivals
        for policy in POLICIES
    ]


def run(case: Case) -> Row:
    """One run: the means, each job's running time, and the use of GPUs by time."""
    unit = 1.0 if case["arrivals"] == SECONDS else 60.0
    by_model = case["arrivals"] == BY_MODEL
    made = table1(
        case["seed"],
        unit=unit,
        batch=BATCH_BY_MODEL if by_model else BATCH,
        exposed=EXPOSED_BY_MODEL if by_model else EXPOSED,
        rigid=case["policy"] in RIGID,
    )
    row, outcome = measure(made, case["policy"])
    seconds = {f"running{k}": job.running for k, job in zip(JOBS, outcome.jobs, strict=True)}
    # 24 points of five minutes are the two hours that Fig. 8 shows.
    ends = [STEP * (k + 1) for k in range(24)]
    shares = use_by_time(outcome, ends)
    return {
        **case,
        **row,
        **seconds,
        **{f"use{end / 60:.0f}": share for end, share in zip(ends, shares, strict=True)},
    }


def table6(runs: Sequence[Row]) -> list[Row]:
    """Running time of each job in units of that under DRAGON: as printed, and over the seeds."""
    rows: list[Row] = []
    for k in JOBS:
        row: Row = {"job": k, "model": LETTERS[k - 1]}
        for policy in (LOCALITY, DEFAULT):
            for kind in (MINUTES, DRAWN):
                part = by_policy(r for r in runs if r["arrivals"] == kind)
                pairs = zip(part[policy], part[DRAGON], strict=True)
                factors = [own[f"running{k}"] / best[f"running{k}"] for own, best in pairs]
                name = f"{policy}, {kind}"
                row |= amount(factors, name) if kind == DRAWN else {name: factors[0]}
        low, high = FIG6_FACTORS
        rows.append({**row, "published_low": low, "published_high": high})
    return rows


def table7(runs: Sequence[Row]) -> list[Row]:
    """Parts of the mean elapsed time in units of the default's, and how much is used."""
    rows: list[Row] = []
    for (kind,), part in groups(runs, "arrivals").items():
        own = by_policy(part)
        for policy in POLICIES:
            row: Row = {"arrivals": kind, "policy": policy, "seeds": len(own[policy])}
            for name in PARTS:
                pairs = zip(own[policy], own[DEFAULT], strict=True)
                row |= amount([run[name] / base["elapsed"] for run, base in pairs], name)
                row[f"{name}_published"] = FIG7[policy][name]
            row |= fraction([run["use"] for run in own[policy]], "use")
            row["use_published"] = FIG8[policy]
            row |= amount([run["at_once"] for run in own[policy]], "at_once")
            pairs = zip(own[policy], own[LOCALITY], strict=True)
            row["below_locality"] = sum(r["elapsed"] < other["elapsed"] for r, other in pairs)
            rows.append(row)
    return rows


def table8(runs: Sequence[Row]) -> list[Row]:
    """Use of the GPUs in each five minutes, arrivals as printed, and its mean over each run."""
    own = by_policy(run for run in runs if run["arrivals"] == MINUTES)
    rows: list[Row] = []
    for policy in POLICIES:
        (run,) = own[policy]
        times = [name for name in run if name.startswith("use") and name != "use"]
        for name in times:
            row: Row = {"policy": policy, "minute": int(name.removeprefix("use"))}
            row |= {"in_use": run[name], "mean": run["use"], "published_mean": FIG8[policy]}
            rows.append(row)
    return rows


def draw6(rows: Sequence[Row], ax: Axes) -> None:
    """Bars by job on a logarithmic axis; the published range of the default is shaded."""
    for k, policy in enumerate((LOCALITY, DEFAULT)):
        places = [row["job"] + 0.4 * k - 0.2 for row in rows]
        bars(ax, places, [row[f"{policy}, {MINUTES}"] for row in rows], 0.38, k, label=policy)
    ax.axhspan(*FIG6_FACTORS, color="0.92", zorder=0, label="published range of the default")
    ax.axhline(1.0, color=ink(), linewidth=0.8)
    ax.set_yscale("log", base=2)
    ax.set_xticks([row["job"] for row in rows], [f"{row['job']}{row['model']}" for row in rows])
    label(ax, "job and model", "running time / that under DRAGON", TITLES[6], 3)


def draw7(arrivals: str, rows: Sequence[Row], ax: Axes) -> None:
    """Stacked bars of the parts for one kind of arrivals; diamonds are the published totals."""
    rows = [row for row in rows if row["arrivals"] == arrivals]
    places, base = range(len(rows)), [0.0] * len(rows)
    for k, name in enumerate(("running", "scaling", "waiting")):
        heights = [row[name] for row in rows]
        bars(ax, places, heights, 0.7, k, bottom=base, label=name)
        base = [low + high for low, high in zip(base, heights, strict=True)]
    totals = [row["elapsed"] for row in rows]
    errors = half_widths(rows, "elapsed")
    ax.errorbar(places, totals, errors, fmt="none", ecolor=ink(), capsize=3)
    published = [row["elapsed_published"] for row in rows]
    ax.plot(places, published, "D", color=ink(), markerfacecolor=paper(), label="published")
    labels = [row["policy"].replace("-", "-\n").replace(" ", "\n") for row in rows]
    ax.set_xticks(places, labels, fontsize=SMALL)
    ax.set_ylim(0.0, 1.1)
    ax.set_title(f"{TITLES[7].partition(':')[0]}: {arrivals}")
    ax.set_ylabel("elapsed time / the default's")
    ax.legend(ncols=2, fontsize=SMALL)


def draw8(rows: Sequence[Row], ax: Axes) -> None:
    """A line for each policy."""
    for k, ((policy,), part) in enumerate(groups(rows, "policy").items()):
        text = f"{policy} (mean {part[0]['mean']:.0%}, published {part[0]['published_mean']:.0%})"
        minutes, shares = [row["minute"] for row in part], [row["in_use"] for row in part]
        ax.plot(minutes, shares, linestyle=line(k), color=ink(), label=text)
    share_axes(ax, "share of the GPUs in use", TITLES[8], top=1.05)


TITLES = {
    6: "DRAGON, Fig. 6: running time of each job",
    7: "DRAGON, Fig. 7: elapsed time and its parts",
    8: "DRAGON, Fig. 8: use of the GPUs over time",
}
RIVALS6 = [f"{rival}, {kind}" for rival in (LOCALITY, DEFAULT) for kind in (MINUTES, DRAWN)]
SHOWN6 = {name: name for name in ("job", "model", *RIVALS6)}
SHOWN7 = headings(
    "arrivals = kind | policy | elapsed | elapsed_published | running | running_published | "
    "waiting | scaling | use = GPUs in use | use_published | below_locality"
)
SHOWN8 = headings("policy | minute | in_use | mean")
PANELS7 = tuple(partial(draw7, kind) for kind in (MINUTES, BY_MODEL, SECONDS, DRAWN))
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure("dragon-6", TITLES[6], table6, SHOWN6, (draw6,), cases, run),
    DirectFigure(
        *("dragon-7", TITLES[7], table7, SHOWN7, PANELS7, cases, run), size=(4.8, 3.8), columns=2
    ),
    DirectFigure("dragon-8", TITLES[8], table8, SHOWN8, (draw8,), cases, run),
)
