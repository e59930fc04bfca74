"""Files of pictures: checked before the work, written atomically, equal bytes every time."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from matplotlib import rc_context
from matplotlib.figure import Figure

from experiments.evaluation.checking import SCHEDULES
from experiments.evaluation.job_comparison import compare_jobs
from experiments.plotting.canvas import fit_for_print
from experiments.plotting.pages import (
    comparison_page,
    ratio_page,
    run_page,
    schedules_page,
)
from experiments.plotting.quote import plot_quote
from experiments.plotting.whatif import waiting_figure
from oasis.model.document import entry, mapping
from oasis.model.errors import InputError
from oasis.model.files import check_writable, write_bytes
from oasis.model.instance import Instance
from oasis.model.schedule import schedules_by_job
from oasis.simulator.result import result_from_dict

# What a format would write about the moment and the program.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# Matplotlib names a clip path after the last digits of its place, which differ from run to run
# where a layout is solved for.
_CLIP_PATH = re.compile(r"(?<=[\"#])p[0-9a-f]{10}(?=[\")])")


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a picture can be written there."""
    _suffix(path)
    check_writable(path)
    return Path(path)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write `figure` in the format that the suffix names; the file appears whole or not at all.

    The same figure gives the same bytes: no dates, and identifiers that do not change.

    Raises
    ------
    ValueError
        If the suffix names no format.

    Examples
    --------
    >>> import tempfile
    >>> from experiments.plotting.canvas import new_figure
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(new_figure(2.0, 2.0), f"{directory}/empty.svg")
    """
    suffix = _suffix(path)
    fit_for_print(figure)
    if suffix == ".svg":
        write_bytes(path, svg_text(figure).encode("utf-8"))
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=FORMATS[suffix])
    write_bytes(path, buffer.getvalue())


def svg_text(figure: Figure) -> str:
    """Draw `figure` as a document of SVG with letters as paths, the same text every time."""
    buffer = io.BytesIO()
    # Without a salt, identifiers are drawn at random;
    # letters as paths need no font where they are read.
    with rc_context({"svg.hashsalt": "oasis", "svg.fonttype": "path", "svg.image_inline": True}):
        figure.savefig(buffer, format="svg", metadata=FORMATS[".svg"])
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"clip{len(names) + 1}")

    return _CLIP_PATH.sub(number, buffer.getvalue().decode("utf-8"))


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(os.fspath(path), f"expected a picture ending in {', '.join(FORMATS)}")
    return suffix


NEED_INSTANCE = ("run", "solve", SCHEDULES)  # kinds that cannot be drawn without their instance


def kind_of(data: Any) -> str:
    """The kind of a document; `SCHEDULES` for one that holds schedules and does not say."""
    if "kind" not in mapping(data) and SCHEDULES in data:
        return SCHEDULES
    return str(data.get("kind"))


def picture_of(data: Mapping[str, Any], name: str, instance: Instance | None) -> Figure:
    """Draw a result."""
    kind = kind_of(data)
    if kind == SCHEDULES:
        schedules = entry(data, SCHEDULES, schedules_by_job)
        return schedules_page(_require_instance(instance), schedules, f"{len(schedules)} schedules")
    result = result_from_dict(data)
    if kind == "run":
        return run_page(_require_instance(instance), result)
    if kind == "solve":
        utilities = f"total utility {result.objective:.6g}, at most {result.upper_bound:.6g}"
        title = f"{result.method}: {utilities}"
        return schedules_page(_require_instance(instance), result.schedules, title)
    if kind == "ratio":
        jobs = None if instance is None else compare_jobs(instance, result)
        return ratio_page({name: result}, jobs)
    if kind == "whatif":
        return waiting_figure(result)
    quote = kind == "quote"
    return cast("Figure", plot_quote(result).figure) if quote else comparison_page(result)


def _require_instance(instance: Instance | None) -> Instance:
    if instance is None:
        raise InputError("instance", "expected the instance that the result is of")
    return instance
