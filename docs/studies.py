"""Tables of studies for the pages: from the CSV files of ``oasis figure``, or computed here."""

from dataclasses import replace
from pathlib import Path

from IPython.display import Markdown

import oasis
from experiments.figures import FIGURES
from experiments.figures.figure import for_people, groups, read_csv


def table(name: str) -> Markdown:
    """All rows of a study, with intervals."""
    figure = FIGURES[name]
    lines = ["| " + " | ".join(figure.shown.values()) + " |", "|---" * len(figure.shown) + "|"]
    for row in read_csv(Path("docs/figures", f"{name}.csv")):
        lines.append("| " + " | ".join(for_people(row, column) for column in figure.shown) + " |")
    return Markdown("\n".join(lines))


def shares(name: str, axis: str) -> Markdown:
    """Mean share of the best, by family and value of `axis`, and the mean over the families."""
    rows = read_csv(Path("docs/figures", f"{name}.csv"))
    families = list(dict.fromkeys(row["family"] for row in rows))
    lines = [
        f"| {axis} | " + " | ".join(families) + " | mean |",
        "|---" * (len(families) + 2) + "|",
    ]
    for (value,), part in groups(rows, axis).items():
        means = [row["share"] for row in part]
        cells = [f"{mean:.3f}" for mean in (*means, sum(means) / len(means))]
        lines.append(f"| {value} | " + " | ".join(cells) + " |")
    return Markdown("\n".join(lines))


def kinds(seeds: range) -> Markdown:
    """What OASiS earns with and without knowing the kinds of machines, by seed of the preset."""
    lines = ["| seed | kinds known | as if all were alike |", "|---:|---:|---:|"]
    for seed in seeds:
        problem = oasis.generate("kinds", seed=seed)
        blind = replace(problem, jobs=tuple(_alike(problem, job) for job in problem.jobs))
        known = oasis.simulate(problem, oasis.OASiS.from_instance(problem)).total_utility
        plans = oasis.simulate(blind, oasis.OASiS.from_instance(blind)).schedules
        admitted = [job for job in problem.jobs if job.id in plans]
        earned = sum(_at_true_speed(problem, job, plans[job.id]) for job in admitted)
        lines.append(f"| {seed} | {known:.0f} | {earned:.0f} |")
    return Markdown("\n".join(lines))


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
