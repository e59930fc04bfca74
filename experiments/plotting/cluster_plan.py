"""The next slots of a cluster: a bar for each node, coloured by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib import colormaps
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 0.3  # inches a node


def plot_cluster_plan(jobs: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Figure:
    """Draw who is planned on which node in the next slots.

    Parameters
    ----------
    jobs : sequence of mapping
        ``job`` and ``plan``, as ``oasis kubernetes plan --json`` gives them.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Figure
        The figure that it is on.
    """
    nodes = sorted(
        {
            node
            for job in jobs
            for entry in job["plan"]
            for kind in ("workers", "parameterServers")
            for node in entry.get(kind, {})
        }
    )
    if ax is None:
        figure = Figure(figsize=(8.0, 1.2 + HEIGHT * max(1, len(nodes))), layout="constrained")
        ax = figure.subplots()
    colours = colormaps["tab20"]
    for k, node in enumerate(nodes):
        for slot, held in sorted(_held(jobs, node).items()):
            left, total = float(slot), sum(count for _, count in held)
            for job, count in held:
                width = count / total
                label = jobs[job]["job"].rpartition("/")[2]
                ax.barh(k, width, left=left, height=0.8, color=colours(job % 20), edgecolor="white")
                ax.text(
                    left + width / 2, k, f"{label}: {count}", ha="center", va="center", fontsize=6
                )
                left += width
    ax.set_yticks(range(len(nodes)), nodes)
    ax.set_xlabel("slot")
    ax.set_title("Planned tasks on each node")
    found = ax.figure
    assert isinstance(found, Figure)
    return found


def _held(jobs: Sequence[Mapping[str, Any]], node: str) -> dict[int, list[tuple[int, int]]]:
    """Jobs and their tasks on `node`, by slot."""
    found: dict[int, list[tuple[int, int]]] = {}
    for k, job in enumerate(jobs):
        for entry in job["plan"]:
            count = sum(
                entry.get(kind, {}).get(node, 0) for kind in ("workers", "parameterServers")
            )
            if count:
                found.setdefault(entry["slot"], []).append((k, count))
    return found
