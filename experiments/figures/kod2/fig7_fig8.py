"""Figs. 7 and 8 of the KOD2 paper: completion times and use of the CPUs beside the operator."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from experiments.figures.direct import Case, DirectFigure
from experiments.figures.kod2.models import BATCHES, NETWORKS, ten_jobs
from experiments.figures.kod2.published import FIG7, FIG8
from experiments.figures.kod2.running import (
    KOD2,
    OPERATOR,
    POLICIES,
    Step,
    mean_busy,
    measure,
)
from experiments.figures.rows import Row, groups, half_widths, interval
from experiments.plotting.canvas import (
    HATCHES,
    LINES,
    axes,
    fill,
    ink,
    legend_below,
    share_axes,
)

SHOWN_BATCH = 64  # of Fig. 8
SPAN = 5  # minutes between the points of Fig. 8
MINUTES = range(SPAN, 65, SPAN)


def cases7(seeds: int) -> list[Case]:
    """Every model, batch size and seed under both."""
    return [
        {"model": model, "batch": batch, "seed": seed}
        for model in NETWORKS
        for batch in BATCHES
        for seed in range(seeds)
    ]


def cases8(seeds: int) -> list[Case]:
    """Those of one batch size."""
    return [case for case in cases7(seeds) if case["batch"] == SHOWN_BATCH]


def both(case: Case) -> dict[str, tuple[Row, list[Step]]]:
    """The operator and KOD2 on the same ten jobs."""
    found = {}
    for policy in POLICIES:
        jobs = (case["model"], case["batch"], case["seed"])
        found[policy] = measure(ten_jobs(*jobs, rigid=policy == OPERATOR), policy)
    return found


def run7(case: Case) -> Row:
    """Both: their mean completion times, and how many jobs were stuck."""
    row: Row = dict(case)
    for policy, (found, _) in both(case).items():
        row |= {f"{policy}_{name}": value for name, value in found.items()}
    return row


def run8(case: Case) -> Row:
    """Use of the CPUs by both, in each five minutes and until KOD2 is done."""
    row, found = dict(case), both(case)
    end = found[KOD2][0]["makespan"]
    for policy, (_, steps) in found.items():
        row[f"{policy}_mean"] = mean_busy(steps, 0.0, end)
        row |= {
            f"{policy}_{minute}": mean_busy(steps, 60.0 * (minute - SPAN), 60.0 * minute)
            for minute in MINUTES
        }
    return row


def table7(runs: Sequence[Row]) -> list[Row]:
    """By model and batch size: mean completion times, and by how much KOD2's is lower."""
    rows: list[Row] = []
    for (model, batch), part in groups(runs, "model", "batch").items():
        row: Row = {"model": model, "batch": batch, "seeds": len(part)}
        for policy in POLICIES:
            row |= interval([run[f"{policy}_mean"] for run in part], policy)
        row |= interval([_reduction(run) for run in part], "reduction")
        row["published"] = FIG7.get((str(model), int(str(batch))))
        row["lower"] = sum(_reduction(run) > 0 for run in part)
        row |= interval([float(run["operator_terminated"]) for run in part], "terminated")
        row["deadlocked"] = sum(run["operator_terminated"] > 0 for run in part)
        row["kod2_terminated"] = sum(run["kod2_terminated"] for run in part)
        rows.append(row)
    return rows


def _reduction(run: Row) -> float:
    return 1.0 - float(run["kod2_mean"]) / float(run["operator_mean"])


def table8(runs: Sequence[Row]) -> list[Row]:
    """By model: mean use of the CPUs, by how much KOD2's is higher, and each five minutes."""
    rows: list[Row] = []
    for (model,), part in groups(runs, "model").items():
        row: Row = {"model": model, "seeds": len(part)}
        for policy in POLICIES:
            row |= interval([run[f"{policy}_mean"] for run in part], policy)
        row |= interval([run["kod2_mean"] / run["operator_mean"] - 1 for run in part], "increase")
        row["published"] = FIG8.get(str(model))
        row["higher"] = sum(run["kod2_mean"] > run["operator_mean"] for run in part)
        for policy in POLICIES:
            for minute in MINUTES:
                name = f"{policy}_{minute}"
                row[name] = sum(run[name] for run in part) / len(part)
        rows.append(row)
    return rows


def draw7(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Bars of both for each model and batch size, on a logarithmic axis."""
    ax = axes(ax)
    for k, policy in enumerate(POLICIES):
        places = [place + 0.4 * k - 0.2 for place in range(len(rows))]
        heights = [row[policy] for row in rows]
        ax.bar(
            places,
            heights,
            0.38,
            yerr=half_widths(rows, policy),
            label=policy,
            color=fill(k),
            hatch=HATCHES[k],
            edgecolor=ink(),
            capsize=2,
        )
    ax.set_xticks(range(len(rows)), [str(row["batch"]) for row in rows])
    for k, ((model,), part) in enumerate(groups(rows, "model").items()):
        middle = k * len(part) + (len(part) - 1) / 2
        place = ax.get_xaxis_transform()  # over the bars of this model
        ax.text(middle, 0.95, str(model), transform=place, ha="center", va="top")
    ax.set_yscale("log")
    ax.set_ylim(10.0, 1e5)
    ax.set_xlabel("batch size, for each model")
    ax.set_ylabel("mean completion time (s)")
    ax.set_title(TITLES[7])
    legend_below(ax, 2)
    return ax


def draw8(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """A line for each model and policy: black is KOD2, grey the operator."""
    ax = axes(ax)
    for k, row in enumerate(rows):
        for policy, shade in ((KOD2, ink()), (OPERATOR, "0.6")):
            shares = [row[f"{policy}_{minute}"] for minute in MINUTES]
            label = f"{row['model']}, {policy} (mean {row[policy]:.0%})"
            ax.plot(list(MINUTES), shares, linestyle=LINES[k], color=shade, label=label)
    share_axes(ax, "share of the cores busy", TITLES[8], columns=2)
    return ax


TITLES = {
    7: "KOD2, Fig. 7: mean completion time by model and batch size",
    8: "KOD2, Fig. 8: use of the CPUs over time, batch size 64",
}
SHOWN7 = {
    "model": "model",
    "batch": "batch",
    "operator": "operator (s)",
    "kod2": "kod2 (s)",
    "reduction": "reduction",
    "published": "published",
    "lower": "seeds lower",
    "deadlocked": "seeds with a deadlock",
    "kod2_terminated": "of kod2",
}
SHOWN8 = {
    "model": "model",
    "operator": "operator",
    "kod2": "kod2",
    "increase": "increase",
    "published": "published",
    "higher": "seeds higher",
}
FIGURES = (
    DirectFigure("kod2-7", TITLES[7], cases7, run7, table7, SHOWN7, (draw7,), (9.0, 4.6)),
    DirectFigure("kod2-8", TITLES[8], cases8, run8, table8, SHOWN8, (draw8,)),
)
