"""The figures of the OASiS paper: utility, lateness, ratio and misjudged U/L."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments.evaluation.policies import FLOOR, OASIS
from experiments.figures.figure import (
    PublishedFigure,
    Row,
    bars,
    groups,
    half_widths,
    headings,
    interval,
    mark,
    means,
)
from experiments.figures.settings import FigureSettings, policy_label
from experiments.plotting.canvas import (
    SMALL,
    fill,
    hatch,
    ink,
    label,
    line,
    marker,
    name_rows,
    paper,
)
from oasis.model.choices import choice
from oasis.model.errors import InputError

# Fig. 3: total utility at T = 300, by policy and number of jobs.
FIG3: Mapping[str, Mapping[int, float]] = {
    "oasis": {100: 2970, 200: 5150, 300: 6680, 400: 7540},
    "fifo": {100: 900, 200: 1120, 300: 400, 400: 900},
    "drf": {100: 2330, 200: 1400, 300: 900, 400: 1000},
    "rrh": {100: 680, 200: 1510, 300: 1860, 400: 1910},
    "dorm": {100: 2690, 200: 3360, 300: 3940, 400: 3700},
}

# Fig. 4: range of the medians of completion minus target, slots; of OASiS is known only that its
# completions are nearest the target.
FIG4: Mapping[str, tuple[float, float]] = {
    "fifo": (43, 63),
    "drf": (43, 63),
    "dorm": (43, 63),
}

# Fig. 5: all ratios lie within.
FIG5 = (1.1, 1.5)

# Fig. 6: total utility of OASiS at 400 jobs, by U/L as a multiple of its true value.
FIG6: Mapping[float, float] = {0.2: 7150, 0.5: 8130, 1.0: 7540, 3.0: 6330, 5.0: 6160, 10.0: 5400}

# Fig. 8: total utility on the testbed.
FIG8: Mapping[str, float] = {"oasis": 283, "fifo": 137, "drf": 90, "rrh": 62, "dorm": 178}

# Fig. 9: median of completion minus target on the testbed, slots.
FIG9: Mapping[str, float] = {"oasis": 0, "fifo": 2, "drf": 6, "rrh": 2, "dorm": 4}


# Whether the printed durations are those that the jobs had, or the shortest ones.
TESTBED, SHORTEST = "testbed-observed", "testbed"
# Section V-B has twelve jobs, and its numbers stand beside no other count.
TESTBED_JOBS = 12


def published_mark() -> dict[str, Any]:
    """Return the style of markers of published numbers, in the colours of the current style."""
    look = {"color": ink(), "markerfacecolor": paper()}
    return {"marker": "D", "markersize": 5, "zorder": 4, **look}


def labelled(cells: Sequence[Row]) -> list[Row]:
    """Return cells with their policy's name in the figures added as ``policy``."""
    return [
        {**cell, "policy": policy_label(cell["policy.name"], cell.get(f"policy.{FLOOR}"))}
        for cell in cells
    ]


def paper_name(policy: str) -> str:
    """Map a policy's name in figures to the paper's, which has one form of OASiS only."""
    return OASIS if policy.startswith(OASIS) else policy


def earned_most(cells: Sequence[Row]) -> Callable[[Row], bool]:
    """Return a test whether a cell's utility is its instance's highest; OASiS forms both may be."""
    played = groups(cells, "instance.jobs", "seed")

    def most(cell: Row) -> bool:
        return all(
            cell["total_utility"] >= other["total_utility"]
            for other in played[cell["instance.jobs"], cell["seed"]]
            if not cell["policy.name"] == OASIS == other["policy.name"]
        )

    return most


def utility_table(
    published: Callable[[str, int], float | None], cells: Sequence[Row], settings: FigureSettings
) -> list[Row]:
    """Rows by jobs and policy: mean total utility over seeds; `published` looks up the paper's."""
    # ``first`` counts the seeds on which the policy earned most (`earned_most`); `published` gives
    # the printed number of a policy at a number of jobs.
    first = earned_most(cells)
    rows = []
    for (jobs, policy), part in groups(labelled(cells), "instance.jobs", "policy").items():
        row: Row = {"jobs": jobs, "policy": policy, "seeds": len(part)}
        row |= interval([cell["total_utility"] for cell in part], "utility", "amount")
        is_full = settings.full_size
        row["published"] = published(paper_name(str(policy)), int(str(jobs))) if is_full else None
        row["first"] = sum(map(first, part))
        counts = means(part, "admitted", "finished")
        rows.append(row | {name: counts[name] for name in ("admitted", "finished")})
    return rows


def draw_utilities(title: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw bars with 95 % intervals, or the values of two seeds; diamonds are published."""
    is_pair = all(row["seeds"] == 2 for row in rows)
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    counts = list(dict.fromkeys(row["jobs"] for row in rows))
    width = 0.86 / len(policies)
    published = []
    for k, policy in enumerate(policies):
        own = [row for row in rows if row["policy"] == policy]
        places = [counts.index(row["jobs"]) - 0.43 + (k + 0.5) * width for row in own]
        bars(
            ax,
            places,
            [row["utility"] for row in own],
            width,
            k,
            yerr=None if is_pair else half_widths(own, "utility"),
            capsize=2,
            linewidth=0.6,
            label=policy if len(counts) > 1 else None,
            error_kw={"linewidth": 1.0, "ecolor": ink()},
        )
        if is_pair:
            ends = [row[f"utility_{end}"] for end in ("low", "high") for row in own]
            text = "" if k else "each seed"
            ax.plot(2 * places, ends, "o", color=ink(), markersize=4, label=text)
        published += [
            (place, row["published"])
            for place, row in zip(places, own, strict=True)
            if row["published"] is not None
        ]
    if published:
        x, y = zip(*published, strict=True)
        ax.plot(x, y, linestyle="none", label="published", **published_mark())
    ax.set_ylim(bottom=0.0)
    if len(counts) > 1:
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        label(ax, "jobs (count)", "total utility", title, len(policies) + 1)
    else:
        places = [(k + 0.5) * width - 0.43 for k in range(len(policies))]
        ax.set_xticks(places, [str(policy).replace("-", "-\n") for policy in policies])
        label(ax, f"policy ({counts[0]} jobs)", "total utility", title)


UTILITY_SHOWN = headings(
    "jobs | policy | utility = total utility | published | first | admitted | finished"
)


def fig3_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of every policy at every number of jobs."""
    instances = settings.instances((100, 200, 300, 400), 300)
    return settings.grid([instances], settings.compared(), name="run")


def testbed(settings: FigureSettings) -> dict[str, Any]:
    """Return the grid axes of the testbed; the preset says how the printed durations are read."""
    if settings.servers is not None:
        raise InputError("servers", "expected none, the testbed has its own", settings.servers)
    preset = choice(settings.preset, (TESTBED, SHORTEST), "preset")
    return {"preset": preset, "jobs": settings.job_counts((TESTBED_JOBS,))}


def on_testbed(task: str, settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of every policy on the testbed, with the task of Fig. 8 or Fig. 9."""
    return settings.grid([testbed(settings)], settings.compared(), name=task)


# -- completion minus target: Figs. 4 and 9 --------------------------------------------------------

# By name, whether a job of this decay is of the kind.
Kinds = Mapping[str, Callable[[float], bool]]
QUANTILES = {"p5": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "p95": 0.95}


def lateness_table(
    kinds: Kinds,
    published: Callable[[str, FigureSettings], tuple[float, float] | None],
    cells: Sequence[Row],
    settings: FigureSettings,
) -> list[Row]:
    """Rows by policy and kind of job: quantiles of lateness over finished jobs of all seeds."""
    # The interval is that of the mean over seeds of each seed's median.
    rows = []
    for (policy,), part in groups(labelled(cells), "policy").items():
        for kind, belongs in kinds.items():
            late = [_of_kind(cell, belongs) for cell in part]
            jobs = sum(len(values) for values in late)
            ended = [[value for value in values if not np.isnan(value)] for values in late]
            row: Row = {"policy": policy, "kind": kind, "seeds": len(part), "jobs": jobs}
            everything = np.array(list(chain.from_iterable(ended)))
            row["finished"] = everything.size
            for quantile, share in QUANTILES.items():
                row[quantile] = float(np.quantile(everything, share)) if everything.size else None
            medians = [float(np.median(values)) for values in ended if values]
            row |= interval(medians, "seed_median")
            ends = published(paper_name(str(policy)), settings) if settings.full_size else None
            low, high = ends or (None, None)
            rows.append(row | {"published_low": low, "published_high": high})
    return rows


def _of_kind(cell: Row, belongs: Callable[[float], bool]) -> list[float]:
    return [
        # NaN, not left out: a job that never finished counts among the jobs of its kind.
        float("nan") if late is None else float(late)
        for late, decay in zip(cell["lateness"], cell["decay"], strict=True)
        if decay is not None and belongs(decay)
    ]


def draw_lateness(title: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw boxes of the finished jobs' lateness; whiskers: 5th to 95th percentile."""
    # The thick bar beside a box is the 95 % confidence interval of the median over seeds;
    # two points are the medians of two seeds. A bracket or diamond is published.
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    height = 0.8 / len(kinds)
    for row in rows:
        k = kinds.index(row["kind"])
        place = policies.index(row["policy"]) - 0.4 + (k + 0.5) * height
        if row["finished"]:
            _box(ax, row, place, height, k)
        _published_median(ax, row, place, height)
        share = f"{row['finished']} of {row['jobs']} finished"
        frames: Any = ("axes fraction", "data"), "offset points"
        ax.annotate(share, (1.0, place), (6, 0), *frames, va="center", fontsize=SMALL)
    for k, kind in enumerate(kinds):
        bars(ax, [np.nan], [np.nan], 0.8, k, color=fill(k + 1), label=kind)
    is_pair = all(row["seeds"] == 2 for row in rows)
    bar = "-", "95 % interval of the median by seed"
    style, text = ("o", "median of each seed") if is_pair else bar
    ax.plot([], [], style, color=ink(), linewidth=3, markersize=4, label=text)
    if any(row["published_low"] is not None for row in rows):
        ax.plot([], [], label="published median", **published_mark())
    ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
    name_rows(ax, policies)
    label(ax, "completion minus target (slots)", "policy", title, 4)


def _box(ax: Axes, row: Row, place: float, height: float, kind: int) -> None:
    names = {"med": "median", "q1": "q1", "q3": "q3", "whislo": "p5", "whishi": "p95"}
    statistics: dict[str, Any] = {statistic: row[column] for statistic, column in names.items()}
    look: dict[str, Any] = {"patch_artist": True, "showfliers": False, "manage_ticks": False}
    drawn = ax.bxp(
        [statistics | {"fliers": []}],
        positions=[place],
        widths=0.62 * height,
        orientation="horizontal",
        medianprops={"color": ink(), "linewidth": 2},
        **look,
    )
    for patch in drawn["boxes"]:
        patch.set(facecolor=fill(kind + 1), hatch=hatch(kind))
    if row["seed_median_low"] is not None:
        ends = [row["seed_median_low"], row["seed_median_high"]]
        style = "o" if row["seeds"] == 2 else "-"
        ax.plot(ends, [place + 0.42 * height] * 2, style, color=ink(), linewidth=3, markersize=4)


def _published_median(ax: Axes, row: Row, place: float, height: float) -> None:
    low, high = row["published_low"], row["published_high"]
    if low is None:
        return
    ends = [low] if low == high else [low, high]
    ax.plot(ends, [place - 0.42 * height] * len(ends), **published_mark())


LATENESS_SHOWN = headings(
    "policy | kind | finished = ended | median | seed_median = by seed | published"
)
CRITICAL = 4.0  # gamma2 from which a job is time-critical
FIG4_KINDS: Kinds = {
    "time-sensitive": lambda decay: 0 < decay < CRITICAL,
    "time-critical": lambda decay: decay >= CRITICAL,
}
FIG9_KINDS: Kinds = {"all jobs": lambda decay: True}


def fig4_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of every policy on half time-sensitive, half time-critical jobs."""
    # The paper's Fig. 4 is of two kinds of jobs; without a decay there is no target to miss.
    instances = settings.instances((200,), 100, mix=[0.0, 0.5, 0.5])
    return settings.grid([instances], settings.compared(), name="lateness")


def fig8_published(policy: str, jobs: int) -> float | None:
    """Look up the utility printed in Fig. 8; None unless for twelve jobs."""
    return FIG8.get(policy) if jobs == TESTBED_JOBS else None


def fig9_published(policy: str, settings: FigureSettings) -> tuple[float, float] | None:
    """Look up the median printed in Fig. 9, as both ends; None unless for twelve jobs."""
    twelve = settings.jobs in (None, (TESTBED_JOBS,))
    return (FIG9[policy],) * 2 if twelve and policy in FIG9 else None


# -- competitive ratio: Fig. 5 ---------------------------------------------------------------------

FIG5_TITLE = "Fig. 5: competitive ratio of OASiS"
FIG5_SHOWN = headings(
    "policy | worker_servers = workers | ps_servers = PSs | priority = gamma1 | proven | ratios | "
    "ratio = geometric mean | median | largest"
)
SERVERS = ((2, 1), (4, 2), (5, 4), (6, 6))  # worker and PS servers: 3, 6, 9, 12 in total
PRIORITIES = ([75.0, 100.0], [50.0, 100.0], [25.0, 100.0], [1.0, 100.0])


def fig5_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of ratios of OASiS for each number of servers and range of gamma1."""
    settings.refuse("Fig. 5 varies its own", "servers", "policies")
    instances = [
        {
            "preset": settings.preset,
            "jobs": settings.job_counts((10,)),
            "worker_servers": workers,
            "ps_servers": ps,
            "horizon": 10,
            "priority": list(PRIORITIES),
        }
        for workers, ps in SERVERS
    ]
    task = {"name": "ratio", **settings.limits()}
    return settings.grid(instances, settings.forms(), **task)


def fig5_table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Rows by servers and gamma1: geometric mean, interval and median of ratios over seeds."""
    # ``ratios`` counts the seeds that have one: where OASiS earned nothing there is none, be it
    # that nobody can earn anything (``nothing_to_earn``) or that only OASiS did not.
    rows = []
    keys = ("policy", "instance.worker_servers", "instance.ps_servers", "instance.priority")
    for (policy, workers, ps, _), part in groups(labelled(cells), *keys).items():
        low, high = part[0]["instance.priority"]
        ratios = [cell["ratio"] for cell in part if cell["ratio"] is not None]
        row: Row = {"policy": policy, "worker_servers": workers, "ps_servers": ps}
        row |= {"priority_low": low, "priority_high": high, "seeds": len(part)}
        row["proven"] = sum(bool(cell["proven"]) for cell in part)
        # A bound of 0 proves that no schedule earns anything; a ratio of 0 over 0 says nothing.
        row["nothing_to_earn"] = sum(cell["offline_upper_bound"] == 0 for cell in part)
        row["ratios"] = len(ratios)
        row |= interval(ratios, "ratio", "ratio")
        row["median"] = float(np.median(ratios)) if ratios else None
        row |= {"smallest": min(ratios, default=None), "largest": max(ratios, default=None)}
        ends = FIG5 if settings.full_size else (None, None)
        rows.append(row | dict(zip(("published_low", "published_high"), ends, strict=True)))
    return rows


def draw_fig5(rows: Sequence[Row], ax: Axes) -> None:
    """Draw geometric means with intervals, medians, and smallest and largest ratios."""
    ranges = list(dict.fromkeys((row["priority_low"], row["priority_high"]) for row in rows))
    sizes = list(dict.fromkeys((row["worker_servers"], row["ps_servers"]) for row in rows))
    with_published = [row for row in rows if row["published_low"] is not None]
    if with_published:
        ends = with_published[0]["published_low"], with_published[0]["published_high"]
        ax.axhspan(*ends, facecolor="0.88", edgecolor="0.6", label="published range", zorder=0)
    for row in rows:
        k = ranges.index((row["priority_low"], row["priority_high"]))
        place = sizes.index((row["worker_servers"], row["ps_servers"])) + 0.18 * (k - 1.5)
        if row["ratios"]:
            _mark(ax, row, place, marker(k))
    for k, (low, high) in enumerate(ranges):
        text = f"$\\gamma_1$ in [{low:g}, {high:g}]"
        ax.plot([], [], marker(k), color=ink(), markerfacecolor=paper(), label=text)
    ax.plot([], [], "-", color=ink(), linewidth=2, label="95 % interval of the geometric mean")
    ax.plot([], [], "x", color=ink(), markersize=5, label="median")
    ax.plot([], [], "_", color="0.35", markersize=7, label="smallest, largest")
    ax.axhline(1.0, color="0.6", linewidth=0.8)
    ax.set_yscale("log", subs=[1.2, 1.5, 2, 3, 5])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    names = [f"{workers + ps} ({workers} + {ps})" for workers, ps in sizes]
    ax.set_xticks(range(len(sizes)), names)
    across = "servers (count: worker servers + parameter-server hosts)"
    title = f"{FIG5_TITLE} ({rows[0]['policy']})"
    label(ax, across, "offline optimum / OASiS (no unit)", title, 4)


def _mark(ax: Axes, row: Row, place: float, marker: str) -> None:
    ends = [row["smallest"], row["largest"]]
    ax.plot([place] * 2, ends, "_:", color="0.35", markersize=7, linewidth=0.8)
    if row["ratio_low"] is not None:
        span = [row["ratio_low"], row["ratio_high"]]
        ax.plot([place] * 2, span, "-", color=ink(), linewidth=2)
    ax.plot(place, row["ratio"], marker, color=ink(), markerfacecolor=paper(), zorder=3)
    ax.plot(place, row["median"], "x", color=ink(), markersize=5, zorder=4)


# -- misjudged U/L: Fig. 6 -------------------------------------------------------------------------

FIG6_TITLE = "Fig. 6: OASiS with misjudged U/L"
FIG6_SHOWN = headings(
    "policy | jobs | scale = U/L | alpha | utility = total utility | relative = over 100 % | "
    "published"
)
PUBLISHED_JOBS = 400


def fig6_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of OASiS with each factor on U/L at each number of jobs."""
    settings.refuse("Fig. 6 is of OASiS alone", "policies")
    instances = settings.instances((100, 200, 300, PUBLISHED_JOBS), 300)
    return settings.grid([instances], settings.forms(scale=list(FIG6)), name="run")


def fig6_table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Rows by jobs and factor: utility over seeds, also relative to that at the true U/L."""
    named = labelled(cells)
    true = {
        (cell["policy"], cell["instance.jobs"], cell["seed"]): cell["total_utility"]
        for cell in named
        if cell["policy.scale"] == 1.0
    }
    rows = []
    keys = ("policy", "instance.jobs", "policy.scale")
    for (policy, jobs, scale), part in groups(named, *keys).items():
        own = [cell["total_utility"] for cell in part]
        base = [true.get((policy, jobs, cell["seed"])) for cell in part]
        row: Row = {"policy": policy, "jobs": jobs, "scale": scale, "seeds": len(part)}
        row["alpha"] = interval([cell["alpha"] for cell in part], "alpha", "amount")["alpha"]
        row |= interval(own, "utility", "amount")
        # Seed by seed: the instances differ more among each other than the factors do.
        row |= interval([a / b for a, b in zip(own, base, strict=True) if b], "relative", "amount")
        is_published = settings.full_size and jobs == PUBLISHED_JOBS
        row["published"] = FIG6.get(float(str(scale))) if is_published else None
        rows.append(row)
    return rows


def draw_fig6(figure: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw total (`utility`) or relative utility over factors, by jobs; and published values."""
    is_total = figure == "utility"
    _lines(rows, figure, ax)
    printed = [row for row in rows if row["published"] is not None]
    if printed:
        true = 1.0 if is_total else next(r["published"] for r in printed if r["scale"] == 1.0)
        places = [100 * row["scale"] for row in printed]
        text = f"published, {PUBLISHED_JOBS} jobs"
        look: dict[str, Any] = {"marker": "x", "color": "0.3", "linewidth": 2, "label": text}
        ax.plot(places, [row["published"] / true for row in printed], ":", **look)
    if is_total:
        ax.set_ylim(bottom=0.0)
        label(ax, USED, "total utility", f"{FIG6_TITLE} ({rows[0]['policy']})", 3)
    else:
        ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
        title = f"the same, relative to 100 %, seed by seed ({rows[0]['policy']})"
        label(ax, USED, "utility / utility at 100 % (no unit)", title, 3)


USED = "U/L used (% of the true value)"
FIG6_PANELS = partial(draw_fig6, "utility"), partial(draw_fig6, "relative")


def _lines(rows: Sequence[Row], figure: str, ax: Axes) -> None:
    counts = list(dict.fromkeys(row["jobs"] for row in rows))
    for k, count in enumerate(counts):
        own = [row for row in rows if row["jobs"] == count and row[figure] is not None]
        shift = 1.05 ** (k - (len(counts) - 1) / 2)  # so that error bars do not cover each other
        places = [100 * row["scale"] * shift for row in own]
        look = {"linestyle": line(k), "markerfacecolor": paper(), "capsize": 3}
        mark(ax, places, own, figure, k, **look, label=f"{count} jobs")
    ax.set_xscale("log")
    ticks = sorted({100 * row["scale"] for row in rows})
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


# -- all of them -----------------------------------------------------------------------------------


def _utility(
    name: str, title: str, published: Callable[[str, int], float | None], *grid: Any, **options: Any
) -> PublishedFigure:
    """Build a figure of total utilities; `grid` and `options` go to `PublishedFigure`."""
    panels = (partial(draw_utilities, title),)
    table = partial(utility_table, published)
    return PublishedFigure(name, title, table, UTILITY_SHOWN, panels, *grid, **options)


def _lateness(
    name: str, title: str, kinds: Kinds, published: Any, *grid: Any, **options: Any
) -> PublishedFigure:
    """Build a figure of lateness by `kinds`; `grid` and `options` go to `PublishedFigure`."""
    panels = (partial(draw_lateness, title),)
    table = partial(lateness_table, kinds, published)
    return PublishedFigure(name, title, table, LATENESS_SHOWN, panels, *grid, **options)


TWENTY: dict[str, Any] = {"seeds": 20, "preset": TESTBED}
FIG8_TITLE = "Fig. 8: total utility on the testbed"
FIG9_TITLE = "Fig. 9: completion minus target on the testbed"
FIGURES: tuple[PublishedFigure, ...] = (
    _utility(
        "fig3",
        "Fig. 3: total utility",
        lambda policy, jobs: FIG3.get(policy, {}).get(jobs),
        fig3_grid,
        size=(10.0, 4.8),
    ),
    _lateness(
        *(
            "fig4",
            "Fig. 4: completion minus target",
            FIG4_KINDS,
            lambda policy, _: FIG4.get(policy),
            fig4_grid,
        ),
        size=(9.0, 7.6),
    ),
    PublishedFigure(
        *("fig5", FIG5_TITLE, fig5_table, FIG5_SHOWN, (draw_fig5,), fig5_grid),
        **TWENTY,
        size=(9.0, 4.8),
        each="policy",
    ),
    PublishedFigure(
        *("fig6", FIG6_TITLE, fig6_table, FIG6_SHOWN, FIG6_PANELS, fig6_grid),
        size=(7.0, 4.8),
        each="policy",
    ),
    _utility(
        *("fig8", FIG8_TITLE, fig8_published, partial(on_testbed, "run")), **TWENTY, size=(7.0, 4.4)
    ),
    _lateness(
        *("fig9", FIG9_TITLE, FIG9_KINDS, fig9_published, partial(on_testbed, "lateness")),
        **TWENTY,
        size=(9.0, 4.8),
    ),
)
