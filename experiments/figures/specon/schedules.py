"""Completion times under SpeCon and the default scheduler: Figs. 5, 6, 7 and 12, and Table III."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from baselines.queues import FIFO
from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    amount,
    fraction,
    groups,
    headings,
    interval,
    label,
    mark,
    means,
)
from experiments.figures.specon.draws import LOSS, Draw, as_published, pooled_mean
from experiments.figures.specon.models import FLAT_TAIL, LOOK, SCHEDULES, TABLE3
from experiments.figures.specon.readings import OtherReading
from experiments.plotting.canvas import fill, ink, marker, paper
from oasis.scheduling import Policy
from oasis.simulator import replay


@dataclass(frozen=True, slots=True)
class Choice:
    """A reading of what the paper leaves open."""

    rebalancing: str = "always"  # both as for `OtherReading`
    counted: str = "worker"
    bend: float = FLAT_TAIL  # of the evaluation functions, as `floor`: see `models.curve`
    floor: float = 0.0
    look: float = LOOK  # seconds between two values of an evaluation function in the log


DEFAULT, SPECON = "default", "specon"
# Both schedulers begin with the same placement in turn; the default one then moves nothing,
# whatever the evaluation functions are.
CHOICES: Mapping[str, Choice | None] = {DEFAULT: None, SPECON: Choice()}


def policy_of(choice: Choice | None, alpha: float = 0.01, interval: float = 30.0) -> Policy:
    """The scheduler of a choice; None: the default one."""
    if choice is None:
        return FIFO(placement="round-robin")
    return OtherReading(alpha, interval, choice.counted, choice.rebalancing)


def shape_of(choice: Choice | None) -> dict[str, float]:
    """Shape of the evaluation functions: options of `Draw.workload`."""
    shown = asdict(choice or Choice())
    return {name: shown[name] for name in ("bend", "floor", "look")}


def measure(draw: Draw, number: int, workers: int, choice: Choice | None, **options: float) -> Row:
    """Mean completion time, makespan and moves; and the completion time of each job.

    Beside them, the mean if all workers were one pool that is shared evenly (`pooled_mean`).
    """
    made = draw.workload(workers, number, **shape_of(choice))
    outcome = replay(made, policy_of(choice, **options))
    assert not outcome.unfinished, "the mean would be one of the finished jobs only"
    times = [job.end - job.arrival for job in outcome.jobs if job.end is not None]
    asked = zip(draw.arrivals, draw.work, strict=True)
    return {
        "mean": math.fsum(times) / len(times),
        "pooled": pooled_mean(asked, workers, draw.loss),
        "makespan": max(job.end for job in outcome.jobs if job.end is not None),
        "moves": sum(job.migrations for job in outcome.jobs),
        **{f"job{k}": time for k, time in enumerate(times, start=1)},
    }


def gains(part: Sequence[Row], base: Sequence[Row], jobs: int) -> Row:
    """Gains of the runs of `part` over those of `base`, draw by draw, with intervals."""
    # The part of the jobs that complete sooner; by how much the mean is lower, on average and, as
    # the ends of `one_draw`, in the middle 95 % of the draws; the largest reduction of one job; and
    # by how much the makespan is lower.
    pairs = list(zip(part, base, strict=True))
    each = [
        [1.0 - own[f"job{k}"] / other[f"job{k}"] for k in range(1, jobs + 1)]
        for own, other in pairs
    ]
    overall = [1.0 - own["mean"] / other["mean"] for own, other in pairs]
    # A gain of the size of rounding is none.
    row = fraction([sum(gain > 1e-9 for gain in some) / jobs for some in each], "reduced")
    row |= interval(overall, "overall")
    # The paper shows one run: this is where one run may lie, not where the mean does.
    low, high = np.quantile(overall, (0.025, 0.975)).tolist()
    row |= {"one_draw_low": low, "one_draw_high": high}
    row |= interval([max(some) for some in each], "best")
    row |= interval(
        [1.0 - own["makespan"] / other["makespan"] for own, other in pairs], "makespan_gain"
    )
    row["better"] = sum(gain > 0 for gain in overall)
    return row


# -- Figs. 5, 6, 7 and 12 --------------------------------------------------------------------------


def schedule_cases(seeds: int) -> list[Case]:
    """Each draw under each scheduler."""
    return [{"draw": number, "policy": policy} for number in range(seeds) for policy in CHOICES]


def schedule_run(figure: str, case: Case) -> Row:
    """One run: a draw of a figure under one scheduler."""
    number, workers = case["draw"], SCHEDULES[figure].workers
    draw = as_published(figure, number)
    measured = measure(draw, number, workers, CHOICES[case["policy"]])
    return {**case, "seed": draw.seed, "loss": draw.loss, **measured}


def schedule_table(figure: str, runs: Sequence[Row]) -> list[Row]:
    """A row for each scheduler: means over the draws, beside what is published."""
    schedule = SCHEDULES[figure]
    default, specon = schedule.default, schedule.specon
    own = {str(policy): part for (policy,), part in groups(runs, "policy").items()}
    rows: list[Row] = []
    for policy, part in own.items():
        base = policy == DEFAULT
        row: Row = {"policy": policy, "seeds": len(part)}
        row |= means(part, "mean")
        row["mean_published"] = default.mean * (1.0 if base else 1.0 - specon.gain)
        row |= means(part, "makespan")
        row["makespan_published"] = default.makespan if base else specon.makespan
        row |= gains(part, own[DEFAULT], schedule.jobs)
        pairs = list(zip(part, own[DEFAULT], strict=True))
        row["as_much"] = sum(1.0 - one["mean"] / two["mean"] >= specon.gain for one, two in pairs)
        row |= interval([1.0 - one["pooled"] / two["mean"] for one, two in pairs], "pooled")
        row |= amount([float(each["moves"]) for each in part], "moves")
        told = (specon.gain, specon.reduced, specon.best)
        for name, value in zip(("overall", "reduced", "best"), told, strict=True):
            row[f"{name}_published"] = None if base else value
        losses = [each["loss"] for each in part]
        row |= amount(losses, "loss")
        row["loss_nine_in_ten"] = float(np.quantile(losses, 0.9))
        for k in range(1, schedule.jobs + 1):
            row[f"job{k}"] = math.fsum(each[f"job{k}"] for each in part) / len(part)
        rows.append(row)
    return rows


def schedule_draw(figure: str, rows: Sequence[Row], ax: Axes) -> None:
    """Completion time of each job in order of arrival, mean over the draws."""
    jobs = range(1, SCHEDULES[figure].jobs + 1)
    for k, row in enumerate(row for row in rows if row["policy"] in (DEFAULT, SPECON)):
        text = f"{row['policy']}: mean {row['mean']:.0f} s"
        text += f", published {row['mean_published']:.0f} s"
        times = [row[f"job{job}"] for job in jobs]
        face = paper() if k else ink()
        ax.plot(jobs, times, marker(k), color=ink(), markerfacecolor=face, label=text)
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    label(ax, "job, in order of arrival", "completion time (s)", _schedule_title(figure))


def _schedule_title(figure: str) -> str:
    schedule = SCHEDULES[figure]
    if schedule.fixed:
        return f"SpeCon, Fig. {figure}: completion times on a fixed schedule"
    jobs, workers = schedule.jobs, schedule.workers
    return (
        f"SpeCon, Fig. {figure}: {jobs} jobs in [0, {schedule.window:.0f} s] on {workers} workers"
    )


SCHEDULE_SHOWN = headings(
    "policy | mean = mean (s) | mean_published | overall = mean lower by | overall_published | "
    "one_draw = middle 95 % of the draws | as_much = draws as much | makespan = makespan (s) | "
    "makespan_published | reduced = jobs that gain | reduced_published | best = largest gain | "
    "best_published | pooled = one pool, shared evenly"
)
SCHEDULE_FIGURES = tuple(
    DirectFigure(
        *(f"specon-{figure}", _schedule_title(figure), partial(schedule_table, figure)),
        *(SCHEDULE_SHOWN, (partial(schedule_draw, figure),)),
        *(schedule_cases, partial(schedule_run, figure)),
        seeds=100,
    )
    for figure in SCHEDULES
)


# -- the same by everything that the paper leaves open ---------------------------------------------


READING_CHOICES: Mapping[str, Choice] = {
    "specon": Choice(),
    "waits for all": Choice("converged"),
    "cluster": Choice(counted="cluster"),
    "cluster, waits for all": Choice("converged", "cluster"),
    "exponential": Choice(bend=1.0),
    "half is left": Choice(floor=0.5),
    "value every 60 s": Choice(look=60.0),
    "exponential, waits for all": Choice("converged", bend=1.0),
}
MOST_JOBS = max(schedule.jobs for schedule in SCHEDULES.values())
CROWDING: Mapping[str, float] = {"drawn": LOSS, "costs nothing": 0.0}


def reading_cases(seeds: int) -> list[Case]:
    """The default scheduler and each choice on each draw of each figure."""
    return [
        {"figure": figure, "crowding": crowding, "draw": number, "choice": choice}
        for figure in SCHEDULES
        for crowding in CROWDING
        for choice in (None, *READING_CHOICES)
        for number in range(seeds)
    ]


def reading_run(case: Case) -> Row:
    """One run."""
    number, workers = case["draw"], SCHEDULES[case["figure"]].workers
    draw = as_published(case["figure"], number, CROWDING[case["crowding"]])
    choice = None if case["choice"] is None else READING_CHOICES[case["choice"]]
    missing = {f"job{k}": None for k in range(1, MOST_JOBS + 1)}  # each row has the same columns
    return {
        **case,
        "seed": draw.seed,
        **missing,
        **measure(draw, number, workers, choice),
    }


def reading_table(runs: Sequence[Row]) -> list[Row]:
    """A row for each figure, crowding and choice: means over the draws, and what is published."""
    own = groups(runs, "figure", "crowding", "choice")
    rows: list[Row] = []
    for (figure, crowding, choice), part in own.items():
        if choice is None:
            continue
        schedule, base = SCHEDULES[str(figure)], own[figure, crowding, None]
        pairs = list(zip(part, base, strict=True))
        row: Row = {"figure": figure, "crowding": crowding, "choice": choice, "seeds": len(part)}
        row |= gains(part, base, schedule.jobs)
        row["overall_published"] = schedule.specon.gain
        row["as_much"] = sum(
            1.0 - one["mean"] / two["mean"] >= schedule.specon.gain for one, two in pairs
        )
        row |= interval([1.0 - one["pooled"] / two["mean"] for one, two in pairs], "pooled")
        row |= means(part, "mean", "makespan")
        row["makespan_published"] = schedule.specon.makespan
        row["reduced_published"] = schedule.specon.reduced
        rows.append(row)
    return rows


def reading_draw(figure: str, rows: Sequence[Row], ax: Axes) -> None:
    """By how much the mean of a figure is lower, by choice; the published value is dotted."""
    part = [row for row in rows if str(row["figure"]) == figure]
    published = 100 * SCHEDULES[figure].specon.gain
    ax.axvline(published, color="0.5", linestyle=":", label="published, one run")
    choices = list(READING_CHOICES)
    for k, ((crowding,), some) in enumerate(groups(part, "crowding").items()):
        places = [choices.index(row["choice"]) + 0.2 * (2 * k - 1) for row in some]
        look = {"markerfacecolor": fill(k), "label": f"crowding: {crowding}"}
        mark(ax, places, some, "overall", k, times=100, sideways=True, **look)
    ax.axvline(0.0, color=ink(), linewidth=0.8)
    ax.set_yticks(range(len(choices)), choices if figure == FIRST else [""] * len(choices))
    ax.set_ylim(len(choices) - 0.5, -0.5)
    label(ax, "mean lower by (%)", "", f"Fig. {figure}")


FIRST = next(iter(SCHEDULES))
READING_SHOWN = headings(
    "figure | crowding | choice | overall = mean lower by | overall_published | "
    "one_draw = middle 95 % of the draws | as_much = draws as much | "
    "pooled = one pool, shared evenly | makespan = makespan (s) | makespan_published | "
    "reduced = jobs that gain | reduced_published"
)
READING_TITLE = "SpeCon, Figs. 5, 6, 7 and 12: by what the paper leaves open"
READING_FIGURES = (
    DirectFigure(
        *("specon-sensitivity", READING_TITLE, reading_table, READING_SHOWN),
        tuple(partial(reading_draw, figure) for figure in SCHEDULES),
        *(reading_cases, reading_run),
        size=(3.2, 4.8),
        seeds=100,
    ),
)


# -- Table III -------------------------------------------------------------------------------------


JOBS, WINDOW, WORKERS = 20, 300.0, 4
# The rows as printed: one pair of parameters is there twice.
PRINTED = ((0.05, 20.0), (0.05, 25.0), (0.05, 30.0), (0.01, 30.0), (0.05, 30.0), (0.10, 30.0))


def parameter_cases(seeds: int) -> list[Case]:
    """The default scheduler, and SpeCon with each pair of parameters."""
    return [
        {"seed": seed, "policy": policy, "alpha": alpha, "interval": seconds}
        for seed in range(seeds)
        for policy in CHOICES
        # The default scheduler has no parameters; its zeros keep the columns alike.
        for alpha, seconds in (TABLE3 if policy != DEFAULT else [(0.0, 0.0)])
    ]


def vae_jobs(number: int) -> Draw:
    """VAE jobs like those of a draw of Fig. 5, which arrive at random."""
    like = as_published("5", number)
    rng = np.random.default_rng([10, number])
    arrivals = np.sort(rng.uniform(0.0, WINDOW, JOBS)).round(1).tolist()
    work = (like.median * np.exp(like.within * rng.standard_normal(JOBS))).round(3).tolist()
    return replace(like, arrivals=tuple(arrivals), work=tuple(work), models=("VAE",) * JOBS)


def parameter_run(case: Case) -> Row:
    """One run."""
    options = {} if case["policy"] == DEFAULT else {k: case[k] for k in ("alpha", "interval")}
    jobs, choice = vae_jobs(case["seed"]), CHOICES[case["policy"]]
    return {**case, **measure(jobs, case["seed"], WORKERS, choice, **options)}


def parameter_table(runs: Sequence[Row]) -> list[Row]:
    """The printed six rows, beside the published numbers."""
    own = groups(runs, "policy", "alpha", "interval")
    base = own[(DEFAULT, 0.0, 0.0)]
    rows: list[Row] = []
    for alpha, seconds in PRINTED:
        part = own[(SPECON, alpha, seconds)]
        row: Row = {"policy": SPECON, "alpha": alpha, "interval": seconds}
        row |= {"seeds": len(part), **gains(part, base, JOBS)}
        published = TABLE3[(alpha, seconds)]
        row |= {f"{name}_published": published[name] for name in ("reduced", "overall")}
        row["best_published"] = published["best"]
        row["makespan_gain_published"] = published["makespan"]
        rows.append(row)
    return rows


def parameter_draw(rows: Sequence[Row], ax: Axes) -> None:
    """By how much the mean is lower, for each row; bars are the published values."""
    places = range(len(PRINTED))
    printed = [TABLE3[pair]["overall"] for pair in PRINTED]
    ax.bar(places, printed, 0.7, color="0.9", edgecolor="0.6", label="published")
    mark(ax, places, rows, "overall", 0, label=SPECON)
    ax.axhline(0.0, color=ink(), linewidth=0.8)
    ax.set_xticks(places, [f"{alpha:g}, {seconds:.0f} s" for alpha, seconds in PRINTED])
    label(ax, "alpha and interval", "mean completion time lower by", PARAMETER_TITLE, 2)


PARAMETER_TITLE = "SpeCon, Table III: threshold and interval"
PARAMETER_SHOWN = headings(
    "policy | alpha | interval = interval (s) | reduced = jobs that gain | reduced_published | "
    "overall = mean lower by | overall_published | one_draw = middle 95 % of the draws | "
    "best = largest gain | best_published | makespan_gain = makespan lower by | "
    "makespan_gain_published | better = seeds better"
)
PARAMETER_FIGURES = (
    DirectFigure(
        *("specon-table3", PARAMETER_TITLE, parameter_table, PARAMETER_SHOWN, (parameter_draw,)),
        *(parameter_cases, parameter_run),
        seeds=100,
    ),
)
