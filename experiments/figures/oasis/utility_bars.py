"""Total utility of the policies beside the published one: Figs. 3 and 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import Row, amount, firsts, groups, half_widths
from experiments.plotting.canvas import HATCHES, axes, fill, ink, legend_below, paper

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


Published = Callable[[str, int], float | None]


def published_mark() -> dict[str, Any]:
    """How published numbers are marked, in the colours of the style that is in force."""
    look = {"color": ink(), "markerfacecolor": paper()}
    return {"marker": "D", "markersize": 5, "zorder": 4, **look}


def utility_rows(cells: Sequence[Row], published: Published) -> list[Row]:
    """A row for each number of jobs and policy."""
    first = firsts(cells, "total_utility", ("instance.jobs", "seed"))
    rows = []
    for (jobs, policy), part in groups(cells, "instance.jobs", "policy.name").items():
        row: Row = {"jobs": jobs, "policy": policy, "seeds": len(part)}
        row |= amount([cell["total_utility"] for cell in part], "utility")
        row["published"] = published(str(policy), int(str(jobs)))
        row["first"] = sum(map(first, part))
        for name in ("admitted", "finished"):
            row[name] = amount([cell[name] for cell in part], name)[name]
        rows.append(row)
    return rows


def draw_utilities(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Grouped bars with 95 % confidence intervals; diamonds are the published numbers."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    counts = list(dict.fromkeys(row["jobs"] for row in rows))
    ax = axes(ax, max(6.4, 0.28 * len(rows) + 2.5), 4.4)
    width = 0.86 / len(policies)
    published = []
    for k, policy in enumerate(policies):
        own = [row for row in rows if row["policy"] == policy]
        places = [counts.index(row["jobs"]) - 0.43 + (k + 0.5) * width for row in own]
        ax.bar(
            places,
            [row["utility"] for row in own],
            width,
            yerr=half_widths(own, "utility"),
            capsize=2,
            color=fill(k),
            hatch=HATCHES[k % len(HATCHES)],
            edgecolor=ink(),
            linewidth=0.6,
            label=policy if len(counts) > 1 else None,
            error_kw={"linewidth": 1.0, "ecolor": ink()},
        )
        published += [
            (place, row["published"])
            for place, row in zip(places, own, strict=True)
            if row["published"] is not None
        ]
    if published:
        x, y = zip(*published, strict=True)
        ax.plot(x, y, linestyle="none", label="published", **published_mark())
    if len(counts) > 1:
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        ax.set_xlabel("jobs (count)")
    else:
        places = [(k + 0.5) * width - 0.43 for k in range(len(policies))]
        ax.set_xticks(places, policies)
        ax.set_xlabel(f"policy ({counts[0]} jobs)")
    ax.set_ylabel("total utility")
    ax.set_ylim(bottom=0.0)
    legend_below(ax, len(policies) + 1 if len(counts) > 1 else 1)
    return ax
