"""Section of a report about ``oasis whatif``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from experiments.evaluation import whatif_tables as tables
from experiments.evaluation.tables import Facts
from experiments.evaluation.whatif import RECORDED
from experiments.evaluation.whatif_result import WhatIf
from experiments.plotting.whatif import (
    loads_figure,
    over_time_figure,
    owners_figure,
    waiting_figure,
)
from experiments.report.section import Picture, ReportTable, Section, inline_svg, table


def whatif_section(
    name: str, data: Mapping[str, Any], found: WhatIf, changed: tuple[str, ...], number: int
) -> Section:
    """Build the section of a result.

    Parameters
    ----------
    name : str
        Name of its file.
    data : mapping
        Its document.
    found : WhatIf
        The result that was read from it.
    changed : tuple of str
        Files that are not any more what they were, in sentences.
    number : int
        Number of the section on the page.
    """
    pictures = tuple(
        Picture(inline_svg(draw(), f"p{number}-{k}-", caption), caption)
        for k, (draw, caption) in enumerate(_pictures(found))
    )
    missing = [f"Without {', '.join(found.missing)}: interrupted."] if found.missing else []
    missing += [f"Failed: {failure}" for failure in found.about.get("failed", ())]
    return Section(
        name=name,
        title=tables.jobs_text(found),
        was_run=_was_run(found),
        facts=[],
        tables=tuple(_tables(found)),
        proofs=[],
        again=(str(data["command"]),) if data.get("command") else (),
        picture="",
        notes=(*missing, *changed),
        answer=tables.answer(found),
        pictures=pictures,
        remarks=tuple(tables.notes(found)),
    )


Drawn = tuple[Callable[[], Figure], str]


def _pictures(found: WhatIf) -> list[Drawn]:
    points = max(len(row["series"]["waiting"]) for row in found.first.policies.values())
    drawn: list[Drawn] = [
        (
            lambda: waiting_figure(found),
            "How long jobs wait for GPUs: median (dot), the middle half (box), 5 % to 95 % (line), "
            "99 % (tick). Less than a second is drawn as 0.",
        ),
        (
            lambda: over_time_figure(found, "waiting"),
            f"Jobs that wait, means over {points} equal parts of each run.",
        ),
        (
            lambda: over_time_figure(found, "in_use"),
            f"GPUs in use, means over {points} equal parts of each run.",
        ),
    ]
    best, reference = found.best(found.first), found.reference
    if best is not None and reference is not None and len(found.owners) > 1:
        shown = list(dict.fromkeys((reference, best)))
        more = len(tables.owner_changes(found, best)) - tables.MOST_OWNERS
        rest = f" {more:,} more owners are in the result." if more > 0 else ""
        who = "Mean waiting of the owners with most GPU-hours." + rest
        drawn.append((lambda: owners_figure(found, shown), who))
    if len({one.load for one in found.settings}) > 1:
        drawn.append((lambda: loads_figure(found), "How the mean grows with the load."))
    return drawn


def _tables(found: WhatIf) -> list[ReportTable]:
    made = [
        table("From submission to end", tables.SERVED, tables.served_rows(found)),
        table(
            "Waiting for GPUs, and their use", tables.WAITED_AND_WORKED, tables.whole_rows(found)
        ),
    ]
    if earned := tables.earned_rows(found):
        made.append(table("What the jobs are worth", tables.EARNED, earned))
    reference, best = found.reference, found.best(found.first)
    if reference is None:
        return made
    than = f"beside {tables.called(reference)}"
    sizes = tables.size_rows(found)
    made.append(table(f"Mean waiting by size, {than}", tables.size_columns(found), sizes))
    if best is not None and best != reference and len(found.owners) > 1:
        rows, _ = tables.owner_rows(found, best)
        made.append(table(f"Mean waiting by owner under {best}, {than}", tables.OWNERS, rows))
    if len(found.settings) > 1:
        title = "Mean from submission to end at other loads and machines"
        made.append(table(title, tables.other_columns(found), tables.other_rows(found)))
    return made


def _was_run(found: WhatIf) -> Facts:
    about = found.about
    facts = [
        ("jobs", f"{about['jobs']:,}"),
        ("machines", tables.machines_text(found.first.machines)),
    ]
    for name in ("kept", "format", "placement", "utilities", "version"):
        if about.get(name) is not None:
            facts.append((name, str(about[name])))
    facts += [("as read", note) for note in about.get("notes", ())]
    facts += [(f"trace {key}", str(value)) for key, value in (about.get("trace") or {}).items()]
    for name, row in found.first.policies.items():
        if name != RECORDED:
            said = ", ".join(f"{key}={value}" for key, value in row["parameters"].items())
            facts.append((f"options of {name}", said or "none"))
    return facts
