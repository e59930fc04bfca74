"""The picture of a result that was written down as JSON, by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from experiments.evaluation.checking import SCHEDULES
from experiments.evaluation.job_comparison import compare_jobs
from experiments.plotting.pages import (
    comparison_page,
    quote_page,
    ratio_page,
    run_page,
    schedules_page,
)
from oasis.model.document import entry, mapping
from oasis.model.errors import OasisError
from oasis.model.instance import Instance
from oasis.model.schedule import schedules_by_job
from oasis.simulator.result_file import result_from_dict

NEED_INSTANCE = ("run", "solve", SCHEDULES)  # kinds that cannot be drawn without their instance


def kind_of(data: Any) -> str:
    """The kind of a document; `SCHEDULES` for one that holds schedules and does not say.

    Raises
    ------
    InstanceError
        If it is not a mapping, or has neither.

    Examples
    --------
    >>> kind_of({"kind": "run"}), kind_of({"schedules": []})
    ('run', 'schedules')
    """
    if "kind" not in mapping(data) and SCHEDULES in data:
        return SCHEDULES
    return str(data.get("kind"))


def picture_of(data: Mapping[str, Any], name: str, instance: Instance | None) -> Figure:
    """Draw a result.

    Parameters
    ----------
    data : mapping
        Document of a command, or one with ``schedules`` alone.
    name : str
        What to call it, such as the name of its file.
    instance : Instance or None
        The instance that it is of. Without it, comparisons and quotes are drawn as they are, and a
        ratio without the jobs that make the difference.

    Raises
    ------
    InstanceError
        With the path of what is missing or wrong.
    OasisError
        If the result cannot be drawn without its instance.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> picture_of(run.to_dict(), "mine", instance).get_suptitle()
    'oasis: total utility 85.8155, 2 of 4 jobs admitted'
    """
    kind = kind_of(data)
    if kind == SCHEDULES:
        schedules = entry(data, SCHEDULES, schedules_by_job)
        return schedules_page(_given(instance), schedules, f"{len(schedules)} schedules")
    found = result_from_dict(data)
    if kind == "run":
        return run_page(_given(instance), found)
    if kind == "solve":
        title = (
            f"{found.method}: total utility {found.objective:.6g}, at most {found.upper_bound:.6g}"
        )
        return schedules_page(_given(instance), found.schedules, title)
    if kind == "ratio":
        jobs = None if instance is None else compare_jobs(instance, found)
        return ratio_page({name: found}, jobs)
    return quote_page(found) if kind == "quote" else comparison_page(found)


def _given(instance: Instance | None) -> Instance:
    if instance is None:
        raise OasisError("instance: expected the instance that the result is of")
    return instance
