"""The experiments of the SpeCon paper, reproduced: Figs. 1 to 3 and 5 to 12, and Table III."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from baselines.queues import FIFO
from baselines.specon import Category, Container, SpeCon
from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    crossed,
    groups,
    headings,
    interval,
    mark,
    means,
    stays,
)
from experiments.figures.specon_draws import (
    EARLY_PROGRESS,
    FLAT_TAIL,
    LOOK,
    LOSS,
    MODELS,
    SAVING_AT_MOST,
    SAVING_SPREAD,
    SCHEDULES,
    TABLE3,
    Draw,
    PublishedSchedule,
    as_published,
    curve,
    job_of,
    on_workers,
    overhead,
    pace,
    pooled_mean,
    progress,
)
from experiments.plotting.canvas import fill, ink, label, line, marker, name_rows, paper
from oasis.scheduling import Allocation, Plan, Policy, Site, View
from oasis.simulator import replay


class OtherReading(SpeCon):
    """SpeCon by another reading of Algorithm 1, line 15, and of when Algorithm 3 runs."""

    # `counted`: line 15 counts containers that still make progress on the "worker" or in the
    # "cluster". `rebalancing`: Algorithm 3 runs "always", as it is printed, or when all containers
    # have "converged", as the text of section V-C has it.
    def __init__(self, alpha: float, interval: float, counted: str, rebalancing: str) -> None:
        super().__init__(alpha, interval)
        self.counted, self.rebalancing = counted, rebalancing

    def even_out(self, now: float) -> None:
        """Run Algorithm 3, always or only if all containers have converged."""
        converged = (container.category is Category.CONVERGED for container in self._everyone())
        if self.rebalancing == "always" or all(converged):
            super().even_out(now)

    def _counted(self, home: int) -> list[Container]:
        return self._everyone() if self.counted == "cluster" else super()._counted(home)

    def _everyone(self) -> list[Container]:
        return [self._containers[job.index] for job in self._running]


@dataclass(frozen=True, slots=True)
class Choice:
    """One reading of what the paper leaves open."""

    rebalancing: str = "always"  # both as for `OtherReading`
    counted: str = "worker"
    bend: float = FLAT_TAIL  # of the evaluation functions, as `floor`: see `curve`
    floor: float = 0.0
    look: float = LOOK  # seconds between two values of an evaluation function in the log


DEFAULT, SPECON = "default", "specon"
# Both schedulers begin with the same placement in turn; the default one then moves nothing,
# whatever the evaluation functions are.
CHOICES: Mapping[str, Choice | None] = {DEFAULT: None, SPECON: Choice()}


def policy_of(choice: Choice | None, alpha: float = 0.01, interval: float = 30.0) -> Policy:
    """Make the scheduler of a choice; for None, the default scheduler."""
    if choice is None:
        return FIFO(placement="round-robin")
    return OtherReading(alpha, interval, choice.counted, choice.rebalancing)


def shape_of(choice: Choice | None) -> dict[str, float]:
    """Return the shape of the evaluation functions as arguments of `Draw.workload`."""
    shown = asdict(choice or Choice())
    return {name: shown[name] for name in ("bend", "floor", "look")}


def measure(draw: Draw, number: int, workers: int, choice: Choice | None, **options: float) -> Row:
    """Run a draw; return mean completion, makespan, moves, and each job's completion time."""
    # Beside them, the mean if all workers were one pool that is shared evenly (`pooled_mean`).
    workload = draw.workload(workers, number, **shape_of(choice))
    outcome = replay(workload, policy_of(choice, **options))
    assert not outcome.unfinished, "the mean would be one of the finished jobs only"
    times = [job.end - job.arrival for job in outcome.jobs if job.end is not None]
    requests = zip(draw.arrivals, draw.work, strict=True)
    return {
        "mean": math.fsum(times) / len(times),
        "pooled": pooled_mean(requests, workers, draw.loss),
        "makespan": max(job.end for job in outcome.jobs if job.end is not None),
        "moves": sum(job.migrations for job in outcome.jobs),
        **{f"job{k}": time for k, time in enumerate(times, start=1)},
    }


def gains(part: Sequence[Row], base: Sequence[Row], jobs: int) -> Row:
    """Compare runs `part` with runs `base`, draw by draw; return gains with intervals."""
    # The part of the jobs that complete sooner; by how much the mean is lower, on average and, as
    # the ends of `one_draw`, in the middle 95 % of the draws; the largest reduction of one job; and
    # by how much the makespan is lower.
    pairs = list(zip(part, base, strict=True))
    per_draw = [
        [1.0 - own[f"job{k}"] / other[f"job{k}"] for k in range(1, jobs + 1)]
        for own, other in pairs
    ]
    overall = [1.0 - own["mean"] / other["mean"] for own, other in pairs]
    # A gain of the size of rounding is none.
    row = interval(
        [sum(gain > 1e-9 for gain in some) / jobs for some in per_draw], "reduced", "fraction"
    )
    row |= interval(overall, "overall")
    # The paper shows one run: this is where one run may lie, not where the mean does.
    low, high = np.quantile(overall, (0.025, 0.975)).tolist()
    row |= {"one_draw_low": low, "one_draw_high": high}
    row |= interval([max(some) for some in per_draw], "best")
    row |= interval(
        [1.0 - own["makespan"] / other["makespan"] for own, other in pairs], "makespan_gain"
    )
    row["better"] = sum(gain > 0 for gain in overall)
    return row


def beside_published(part: Sequence[Row], base: Sequence[Row], schedule: PublishedSchedule) -> Row:
    """Count the draws that gain as much as published; add the gain of an evenly shared pool."""
    pairs = list(zip(part, base, strict=True))
    gained = [1.0 - own["mean"] / other["mean"] for own, other in pairs]
    row: Row = {"as_much": sum(gain >= schedule.specon.gain for gain in gained)}
    return row | interval([1.0 - own["pooled"] / other["mean"] for own, other in pairs], "pooled")


# -- Figs. 5, 6, 7 and 12 --------------------------------------------------------------------------


def schedule_cases(seeds: int) -> list[Case]:
    """Return a case for each draw and scheduler."""
    return crossed(draw=range(seeds), policy=CHOICES)


def schedule_run(figure: str, case: Case) -> Row:
    """Run a draw of a figure under a scheduler."""
    number, workers = case["draw"], SCHEDULES[figure].workers
    draw = as_published(figure, number)
    measured = measure(draw, number, workers, CHOICES[case["policy"]])
    return {**case, "seed": draw.seed, "loss": draw.loss, **measured}


def schedule_table(figure: str, runs: Sequence[Row]) -> list[Row]:
    """Rows of schedulers: means over the draws, beside published values."""
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
        row |= beside_published(part, own[DEFAULT], schedule)
        row |= means(part, "moves")
        published = (specon.gain, specon.reduced, specon.best)
        for name, value in zip(("overall", "reduced", "best"), published, strict=True):
            row[f"{name}_published"] = None if base else value
        row |= means(part, "loss")
        row["loss_nine_in_ten"] = float(np.quantile([run["loss"] for run in part], 0.9))
        for k in range(1, schedule.jobs + 1):
            row[f"job{k}"] = math.fsum(run[f"job{k}"] for run in part) / len(part)
        rows.append(row)
    return rows


def schedule_draw(figure: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw the mean completion time of each job, in order of arrival."""
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
    """Return a case for each figure, crowding, choice (None: default scheduler) and draw."""
    return [
        {"figure": figure, "crowding": crowding, "draw": number, "choice": choice}
        for figure in SCHEDULES
        for crowding in CROWDING
        for choice in (None, *READING_CHOICES)
        for number in range(seeds)
    ]


def reading_run(case: Case) -> Row:
    """Run a case of `reading_cases`."""
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
    """Rows by figure, crowding and choice: means over draws, beside published values."""
    own = groups(runs, "figure", "crowding", "choice")
    rows: list[Row] = []
    for (figure, crowding, choice), part in own.items():
        if choice is None:
            continue
        schedule, base = SCHEDULES[str(figure)], own[figure, crowding, None]
        row: Row = {"figure": figure, "crowding": crowding, "choice": choice, "seeds": len(part)}
        row |= gains(part, base, schedule.jobs)
        row["overall_published"] = schedule.specon.gain
        row |= beside_published(part, base, schedule)
        row |= means(part, "mean", "makespan")
        row["makespan_published"] = schedule.specon.makespan
        row["reduced_published"] = schedule.specon.reduced
        rows.append(row)
    return rows


def reading_draw(figure: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw the reduction of a figure's mean by choice; the published value is dotted."""
    part = [row for row in rows if str(row["figure"]) == figure]
    published = 100 * SCHEDULES[figure].specon.gain
    ax.axvline(published, color="0.5", linestyle=":", label="published, one run")
    choices = list(READING_CHOICES)
    for k, ((crowding,), some) in enumerate(groups(part, "crowding").items()):
        places = [choices.index(row["choice"]) + 0.2 * (2 * k - 1) for row in some]
        look = {"markerfacecolor": fill(k), "label": f"crowding: {crowding}"}
        mark(ax, places, some, "overall", k, times=100, sideways=True, **look)
    ax.axvline(0.0, color=ink(), linewidth=0.8)
    name_rows(ax, choices if figure == FIRST else [""] * len(choices))
    label(ax, "mean lower by (%)", "", f"Fig. {figure}")


FIRST = next(iter(SCHEDULES))
READING_SHOWN = headings(
    "figure | crowding | choice | overall = mean lower by | overall_published | "
    "one_draw = middle 95 % of the draws | as_much = draws as much | "
    "pooled = one pool, shared evenly | makespan = makespan (s) | makespan_published | "
    "reduced = jobs that gain | reduced_published"
)
READING_TITLE = "SpeCon, Figs. 5, 6, 7 and 12: by what the paper leaves open"


# -- Table III -------------------------------------------------------------------------------------


JOBS, WINDOW, WORKERS = 20, 300.0, 4
# The rows as printed: one pair of parameters is there twice.
PRINTED = ((0.05, 20.0), (0.05, 25.0), (0.05, 30.0), (0.01, 30.0), (0.05, 30.0), (0.10, 30.0))


def parameter_cases(seeds: int) -> list[Case]:
    """Return a case for each seed: the default scheduler, and SpeCon by parameters."""
    return [
        {"seed": seed, "policy": policy, "alpha": alpha, "interval": seconds}
        for seed in range(seeds)
        for policy in CHOICES
        # The default scheduler has no parameters; its zeros keep the columns alike.
        for alpha, seconds in (TABLE3 if policy != DEFAULT else [(0.0, 0.0)])
    ]


def vae_jobs(number: int) -> Draw:
    """Draw VAE jobs that resemble a draw of Fig. 5, with random arrivals."""
    like = as_published("5", number)
    rng = np.random.default_rng([10, number])
    arrivals = np.sort(rng.uniform(0.0, WINDOW, JOBS)).round(1).tolist()
    work = (like.median * np.exp(like.within * rng.standard_normal(JOBS))).round(3).tolist()
    return replace(like, arrivals=tuple(arrivals), work=tuple(work), models=("VAE",) * JOBS)


def parameter_run(case: Case) -> Row:
    """Run a case of `parameter_cases`."""
    options = {} if case["policy"] == DEFAULT else {k: case[k] for k in ("alpha", "interval")}
    jobs, choice = vae_jobs(case["seed"]), CHOICES[case["policy"]]
    return {**case, **measure(jobs, case["seed"], WORKERS, choice, **options)}


def parameter_table(runs: Sequence[Row]) -> list[Row]:
    """Rows of Table III, gains beside the published ones."""
    own = groups(runs, "policy", "alpha", "interval")
    base = own[(DEFAULT, 0.0, 0.0)]
    rows: list[Row] = []
    for alpha, seconds in PRINTED:
        part = own[(SPECON, alpha, seconds)]
        row: Row = {"policy": SPECON, "alpha": alpha, "interval": seconds}
        row |= {"seeds": len(part), **gains(part, base, JOBS)}
        published = TABLE3[(alpha, seconds)]
        row |= {f"{name}_published": published[name] for name in ("reduced", "overall", "best")}
        row["makespan_gain_published"] = published["makespan"]
        rows.append(row)
    return rows


def parameter_draw(rows: Sequence[Row], ax: Axes) -> None:
    """Draw the reduction of the mean for each row; bars are published."""
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


# -- Figs. 1 to 3: trainings on their own, and what saving one costs -------------------------------


POINTS1 = tuple(k / 50 for k in range(51))  # shares of the training, for Fig. 1
NONSTOP = "nonstop"
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the training, for the VAE
TWO = (0.3, 0.7)  # for each model


def cases1(seeds: int) -> list[Case]:
    """Return a case for each model of Fig. 1 and share of the training."""
    return crossed(model=EARLY_PROGRESS, share=POINTS1)


def run1(case: Case) -> Row:
    """Return a model's share of the whole reduction made by a share of its training."""
    rate = pace(EARLY_PROGRESS[case["model"]], FLAT_TAIL)
    return {**case, "progress": progress(case["share"], rate, FLAT_TAIL)}


def table1(runs: Sequence[Row]) -> list[Row]:
    """Add the published numbers to the points of the curves."""
    return [
        run | {"published": EARLY_PROGRESS[run["model"]] if run["share"] == 0.2 else None}
        for run in runs
    ]


def draw1(rows: Sequence[Row], ax: Axes) -> None:
    """Draw a curve for each model, with the published points marked."""
    for k, ((model,), part) in enumerate(groups(rows, "model").items()):
        shares = [100 * row["share"] for row in part]
        percents = [100 * row["progress"] for row in part]
        ax.plot(shares, percents, linestyle=line(k), color=ink(), label=str(model))
        ax.plot(20.0, 100 * EARLY_PROGRESS[str(model)], marker(k), color=ink())
    label(ax, "training time (%)", "progress (%)", TITLE1, 3)


class MovesOnce:
    """A policy that runs one job on the first machine and moves it to the second at time `at`."""

    name, slotted, told_remaining = "moves-once", False, False

    def __init__(self, at: float | None) -> None:
        self._at = at

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"at": self._at}

    def reset(self, site: Site) -> None:
        self._home = 0

    def decide(self, view: View) -> Plan:
        jobs = list(view.jobs())
        if self._at is not None and view.now >= self._at:
            self._home = 1
        plan = Plan({job.index: Allocation(((self._home, 1),)) for job in jobs})
        if self._at is not None and jobs and view.now < self._at:
            plan.wake_at = self._at
        return plan


def saving_cases(seeds: int) -> list[Case]:
    """Return cases by seed: the VAE saved at nine points (Fig. 2), each model at two (Fig. 3)."""
    one = [("2", "VAE", share) for share in (None, *SHARES)]
    two = [("3", model, share) for model in MODELS for share in (None, *TWO)]
    return [
        {"seed": seed, "point": point, "figure": figure, "model": model, "share": share}
        for seed in range(seeds)
        for point, (figure, model, share) in enumerate(one + two)
    ]


def saving_run(case: Case) -> Row:
    """Train one model alone, saved after a share of its work; return its time."""
    share, work = case["share"], as_published("5", case["seed"]).median
    costs = overhead(case["seed"], 1 + case["point"])
    workload = on_workers([job_of(0, 0.0, work, curve(case["model"]))], 2, costs=costs)
    # The job runs alone at full speed until then, so the share of its work is a share of its time.
    at = None if share is None else share * work
    outcome = replay(workload, MovesOnce(at))
    row: Row = {"seed": case["seed"], "figure": case["figure"], "model": case["model"]}
    return row | {"saved_at": NONSTOP if share is None else share, "time": outcome.jobs[0].end}


def saving_table(runs: Sequence[Row]) -> list[Row]:
    """Rows of trainings: overhead against the training never stopped, over seeds."""
    # The spread is the standard deviation over the points of a figure, as in the paper, on average.
    nonstop = {
        (run["seed"], run["figure"], run["model"]): run["time"]
        for run in runs
        if run["saved_at"] == NONSTOP
    }
    more = [
        {**run, "overhead": run["time"] - nonstop[run["seed"], run["figure"], run["model"]]}
        for run in runs
    ]
    stopped = [run for run in more if run["saved_at"] != NONSTOP]
    spreads = {
        figure: fmean(
            stdev(run["overhead"] for run in part)
            for (_, own), part in groups(stopped, "seed", "figure").items()
            if own == figure
        )
        for figure in ("2", "3")
    }
    rows: list[Row] = []
    for (figure, model, saved_at), part in groups(more, "figure", "model", "saved_at").items():
        row: Row = {"figure": figure, "model": model, "saved_at": saved_at, "seeds": len(part)}
        row["time"] = fmean(run["time"] for run in part)
        row |= means(part, "overhead")
        row["largest"] = max(run["overhead"] for run in part)
        row["published_most"] = SAVING_AT_MOST
        row["spread"] = None if saved_at == NONSTOP else spreads[str(figure)]
        row["spread_published"] = SAVING_SPREAD if figure == "2" and row["spread"] else None
        rows.append(row)
    return rows


def saving_draw(rows: Sequence[Row], ax: Axes) -> None:
    """Draw the overhead by the point of saving; the published limit is dotted."""
    stopped = [row for row in rows if row["saved_at"] != NONSTOP]
    for k, model in enumerate(MODELS):
        part = [row for row in stopped if row["model"] == model]
        places = [100 * row["saved_at"] + k - 2 for row in part]  # beside each other
        mark(ax, places, part, "overhead", k, fillstyle="none", label=model)
    ax.axhline(SAVING_AT_MOST, color="0.5", linestyle=":", label="published: less than")
    ax.set_ylim(0.0, 6.0)
    label(ax, "saved at (% of the training)", "overhead (s)", SAVING_TITLE, 3)


TITLE1 = "SpeCon, Fig. 1: progress of trainings on their own"
SHOWN1 = headings("model | share | progress | published")
SAVING_TITLE = "SpeCon, Figs. 2 and 3: overhead of saving and resuming"
SAVING_SHOWN = headings(
    "figure | model | saved_at | time = time (s) | overhead = overhead (s) | "
    "largest = largest (s) | published_most = published: less than | "
    "spread = standard deviation (s) | spread_published"
)


# -- Figs. 8 to 11: where the 30 jobs of Fig. 7 run, and what is used there ------------------------


SHOWN_POLICIES = (DEFAULT, SPECON)
STAY_WORKERS = SCHEDULES["7"].workers
MOVES = {"migrated": "M", "rebalanced": "R"}


def stay_cases(_seeds: int) -> list[Case]:
    """Return a case for each scheduler, on the first draw."""
    return [{"policy": policy} for policy in SHOWN_POLICIES]


def stay_run(case: Case) -> Row:
    """Run a case; return as text each stay of a job on a worker: job, worker, begin, end, mark."""
    choice = CHOICES[case["policy"]]
    workload = as_published("7", 0).workload(STAY_WORKERS, 0, **shape_of(choice))
    policy = policy_of(choice)
    spans = stays(workload, policy)
    log = policy.log if isinstance(policy, SpeCon) else []
    marks = {(move.job, move.time): MOVES.get(move.kind, "") for move in log}
    rows = [
        f"{job} {where.workers[0][0] + 1} {begin!r} {end!r} {marks.get((job, begin), '')}".rstrip()
        for job, begin, end, where in spans
    ]
    return {**case, "stays": ";".join(rows)}


def stay_table(runs: Sequence[Row]) -> list[Row]:
    """Rows of stays: job, worker, begin, end, mark."""
    rows: list[Row] = []
    for run in runs:
        for stay in run["stays"].split(";"):
            job, worker, begin, end, *mark = stay.split(" ")
            rows.append(
                {
                    "policy": run["policy"],
                    "worker": int(worker),
                    "job": job,
                    "begin": float(begin),
                    "end": float(end),
                    "moved": mark[0] if mark else None,
                }
            )
    return rows


def draw_jobs(policy: str, number: int, rows: Sequence[Row], ax: Axes) -> None:
    """Draw a bar for each stay, by worker; marks M and R are moves."""
    part = sorted(
        (row for row in rows if row["policy"] == policy),
        key=lambda row: (row["worker"], row["begin"], row["job"]),
    )
    for place, row in enumerate(part):
        shade = fill(row["worker"] % 2)
        ax.barh(place, row["end"] - row["begin"], left=row["begin"], color=shade, height=0.8)
        text = row["job"].removeprefix("job") + (f"-{row['moved']}" if row["moved"] else "")
        ax.text(row["end"], place, f" {text}", va="center", fontsize=5)
    ends = [sum(row["worker"] <= worker for row in part) for worker in range(STAY_WORKERS + 1)]
    for end in ends[1:-1]:
        ax.axhline(end - 0.5, color="0.5", linewidth=0.6)
    middles = [(begin + end - 1) / 2 for begin, end in pairwise(ends)]
    ax.set_yticks(middles, [str(worker) for worker in range(1, STAY_WORKERS + 1)])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(part) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    label(ax, "time (s)", "worker, and its jobs", f"SpeCon, Fig. {number}: {policy}")


def draw_use(policy: str, number: int, rows: Sequence[Row], ax: Axes) -> None:
    """Draw the number of jobs that share the cores of each worker."""
    part = [row for row in rows if row["policy"] == policy]
    end = max(row["end"] for row in rows)
    for worker in range(1, STAY_WORKERS + 1):
        own = [row for row in part if row["worker"] == worker]
        changes = sorted({0.0, end, *(time for row in own for time in (row["begin"], row["end"]))})
        counts = [sum(row["begin"] <= time < row["end"] for row in own) for time in changes]
        base = 12.0 * (STAY_WORKERS - worker)
        ax.fill_between(
            changes, base, [base + count for count in counts], step="post", color=fill(worker % 2)
        )
        ax.axhline(base, color=ink(), linewidth=0.6)
        busy = sum(b - a for (a, b), count in zip(pairwise(changes), counts, strict=False) if count)
        ax.text(end, base + 10.0, f"worker {worker}: busy {busy / end:.0%}", ha="right", fontsize=7)
    ax.set_yticks([])
    ax.set_ylim(0.0, 12.0 * STAY_WORKERS)
    ax.set_xlim(0.0, end)
    caption = "jobs that share the cores, by worker"
    label(ax, "time (s)", caption, f"SpeCon, Fig. {number}: {policy}")


STAY_SHOWN = headings("policy | worker | job | begin = begin (s) | end = end (s) | moved")
PLACES = (partial(draw_jobs, DEFAULT, 8), partial(draw_jobs, SPECON, 9))
USE = (partial(draw_use, DEFAULT, 10), partial(draw_use, SPECON, 11))
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure("specon-1", TITLE1, table1, SHOWN1, (draw1,), cases1, run1),
    DirectFigure(
        *("specon-2", SAVING_TITLE, saving_table, SAVING_SHOWN, (saving_draw,)),
        *(saving_cases, saving_run),
    ),
    *SCHEDULE_FIGURES,
    DirectFigure(
        *("specon-9", "SpeCon, Figs. 8 and 9: where each job runs", stay_table, STAY_SHOWN),
        *(PLACES, stay_cases, stay_run),
        size=(6.0, 6.4),
        seeds=1,
    ),
    DirectFigure(
        *("specon-11", "SpeCon, Figs. 10 and 11: use of the workers", stay_table, STAY_SHOWN),
        *(USE, stay_cases, stay_run),
        size=(6.0, 4.6),
        seeds=1,
    ),
    DirectFigure(
        *("specon-table3", PARAMETER_TITLE, parameter_table, PARAMETER_SHOWN, (parameter_draw,)),
        *(parameter_cases, parameter_run),
        seeds=100,
    ),
    DirectFigure(
        *("specon-sensitivity", READING_TITLE, reading_table, READING_SHOWN),
        tuple(partial(reading_draw, figure) for figure in SCHEDULES),
        *(reading_cases, reading_run),
        size=(3.2, 4.8),
        seeds=100,
    ),
)
