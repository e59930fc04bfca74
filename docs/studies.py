"""Tables of studies for the pages: from the CSV files of ``oasis figure``, or computed here.

A table has at most six columns on a page, numbers at the right; a second line of a cell has its
interval or the published number. What a page leaves out is in the CSV file beside the picture.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from IPython.display import Markdown
from tables import markdown
from verdicts import verdicts_of

import oasis
from experiments.figures import EXPERIMENTS, FIGURES
from experiments.figures.figure import Row, for_people, groups, read_csv

DATA = Path("docs/figures")
Keep = Callable[[Row], bool]


def table(
    name: str,
    *columns: str,
    keep: Keep = lambda row: True,
    second: str = "interval",
    path: str | None = None,
) -> Markdown:
    """Rows of a figure: `columns` of those that it shows, all where none is named.

    `second` is what a cell has in its second line, ``interval`` or ``published``. `path` is another
    file with the same columns.
    """
    shown = (EXPERIMENTS | FIGURES)[name].shown
    rows = [row for row in read_csv(DATA / (path or f"{name}.csv")) if keep(row)]
    chosen = columns or tuple(shown)
    cells = [[_cell(row, column, second) for column in chosen] for row in rows]
    return markdown([shown[column] for column in chosen], cells)


def grid(
    name: str,
    axes: Sequence[str],
    value: str,
    *,
    corner: str = "",
    keep: Keep = lambda row: True,
    second: str = "interval",
    path: str | None = None,
) -> Markdown:
    """One value of a figure, with a column for each value of the last axis.

    The other axes name the rows; `corner` is the heading of the last of them.
    """
    *down, across = axes
    rows = [row for row in read_csv(DATA / (path or f"{name}.csv")) if keep(row)]
    columns = list(groups(rows, across))
    cells = []
    for key, part in groups(rows, *down).items():
        found = {row[across]: _cell(row, value, second) for row in part}
        cells.append([*map(_plain, key), *(found[column] for (column,) in columns)])
    heads = [*down[:-1], corner or f"{down[-1]} \\ {across}", *(_plain(c) for (c,) in columns)]
    return markdown(heads, cells)


def shares(name: str, axis: str) -> Markdown:
    """Mean share of the best, by family and value of `axis`, and the mean over the families."""
    rows = read_csv(DATA / f"{name}.csv")
    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    cells = []
    for (value,), part in groups(rows, axis).items():
        means = [row["share"] for row in part]
        cells.append([str(value), *(f"{mean:.3f}" for mean in (*means, sum(means) / len(means)))])
    return markdown([axis, *families, "mean"], cells)


def verdicts(figure: str) -> Markdown:
    """What the OASiS paper says of one of its figures, and whether the runs say so too."""
    found = (each for each in verdicts_of(DATA) if each.figure == figure)
    rows = [
        [each.says, each.policy, each.found, "reproduced" if each.agrees else "**not**"]
        for each in found
    ]
    return markdown(["the paper says", "policy", "here", "verdict"], rows)


def kinds(seeds: range) -> Markdown:
    """What OASiS earns with and without knowing the kinds of machines, by seed of the preset."""
    rows = []
    for seed in seeds:
        problem = oasis.generate("kinds", seed=seed)
        blind = replace(problem, jobs=tuple(_alike(problem, job) for job in problem.jobs))
        known = oasis.simulate(problem, oasis.OASiS.from_instance(problem)).total_utility
        plans = oasis.simulate(blind, oasis.OASiS.from_instance(blind)).schedules
        admitted = [job for job in problem.jobs if job.id in plans]
        earned = sum(_at_true_speed(problem, job, plans[job.id]) for job in admitted)
        rows.append((str(seed), f"{known:.0f}", f"{earned:.0f}"))
    return markdown(("seed", "kinds known", "as if all were alike"), rows)


def _alike(problem: oasis.Instance, job: oasis.Job) -> oasis.Job:
    """The job as if every machine were of the kind on which it is slowest."""
    slowest = max(job.in_forms, key=lambda form: form.work(problem.slot_seconds))
    return replace(slowest, requires={})


def _at_true_speed(problem: oasis.Instance, job: oasis.Job, schedule: oasis.Schedule) -> float:
    """What the plan for machines that are all alike earns on those that are there."""
    needed = {form.requires["gpu"][0]: form.work(problem.slot_seconds) for form in job.in_forms}
    kinds = [server.labels["gpu"] for server in problem.cluster.worker_servers]
    done = 0.0
    for slot in range(schedule.start, schedule.completion + 1):
        rows = schedule.workers[schedule.workers[:, 0] == slot]
        if len(rows):
            done += rows[:, 2].sum() / max(needed[kinds[machine]] for machine in rows[:, 1])
        if done >= 1 - 1e-9:
            return float(job.utility(slot - job.arrival))
    raise AssertionError(f"{job.id} is not done")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _cell(row: Row, column: str, second: str) -> str:
    if second == "published":
        plain = {column: row[column]} if column in row else row
        published = row.get(f"{column}_published", row.get("published"))
        below = "" if published is None else f"published {for_people({column: published}, column)}"
        return _two_lines(for_people(plain, column), below)
    mean, _, interval = for_people(row, column).partition(" (")
    return _two_lines(mean, f"({interval}" if interval else "")


def _two_lines(first: str, second: str) -> str:
    return f"{first}<br><small>{second}</small>" if second else first
