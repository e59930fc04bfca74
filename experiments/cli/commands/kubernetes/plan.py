"""``oasis kubernetes plan``: who runs where in the next slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    Context,
    JobNamespace,
    Kubeconfig,
    connect,
    jobs_of,
)
from experiments.cli.options import AsJson, Picture, ResultFile
from experiments.cli.results import deliver

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def command(
    *,
    jobs: JobNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: ResultFile = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Show who is planned where in the next slots: a row a job, a column a slot.

    A cell such as 3+1 is three workers and one parameter server. The plan is that of the last
    boundary; recourse may make another one at the next.

    Example: oasis kubernetes plan --plot plan.svg
    """
    document = {
        "jobs": [
            entry
            for item in jobs_of(connect(kubeconfig, context), jobs)
            if (entry := planned(item))["plan"]
        ]
    }
    deliver(
        document,
        lambda: _show(document),
        as_json=as_json,
        output=output,
        plot=plot,
        draw=lambda: _draw(document),
    )


def planned(item: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of one object."""
    meta = item["metadata"]
    plan = (item.get("status") or {}).get("plan") or []
    return {"job": f"{meta['namespace']}/{meta['name']}", "plan": plan}


def _show(document: Mapping[str, Any]) -> None:
    slots = sorted({entry["slot"] for job in document["jobs"] for entry in job["plan"]})
    rows = []
    for job in document["jobs"]:
        cells = {entry["slot"]: _cell(entry) for entry in job["plan"]}
        nodes = sorted({node for entry in job["plan"] for node in entry.get("workers", {})})
        rows.append((job["job"], *(cells.get(slot, "") for slot in slots), ", ".join(nodes)))
    columns = [("job", False), *((f"slot {slot}", True) for slot in slots), ("worker nodes", False)]
    console.print_rows(columns, rows, title=f"{len(rows)} jobs are planned")


def _cell(entry: Mapping[str, Any]) -> str:
    workers = sum(entry.get("workers", {}).values())
    servers = sum(entry.get("parameterServers", {}).values())
    return f"{workers}+{servers}" if servers else str(workers)


def _draw(document: Mapping[str, Any]) -> Figure:
    from experiments.plotting.cluster_plan import plot_cluster_plan  # noqa: PLC0415 (an extra)

    return plot_cluster_plan(document["jobs"])
