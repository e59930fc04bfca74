"""Reading results back: what the commands and ``to_dict`` write, by its ``kind``."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from oasis.model import document
from oasis.model.errors import InstanceError
from oasis.model.file_kinds import RESULTS, SCHEDULES
from oasis.model.instance_file import read_json
from oasis.model.validation import describe

# The class of each kind of document, whose `from_dict` reads it. Classes outside of this package
# are named only, and imported when such a document is read: nothing here depends on them.
READERS = {
    "run": "oasis.simulator.result:Run",
    "quote": "oasis.model.decision:Decision",
    "solve": "offline.result:OfflineResult",
    "ratio": "experiments.evaluation.competitive_ratio:CompetitiveRatio",
    "compare": "experiments.evaluation.comparison:Comparison",
    "replay": "experiments.evaluation.comparison:Comparison",
}


def read_result(path: str | os.PathLike[str]) -> Any:
    """Read a result that a command or ``to_dict`` wrote as JSON.

    Parameters
    ----------
    path : path
        File of ``-o`` or ``--json`` of ``oasis run``, ``solve``, ``ratio``, ``compare``, ``replay``
        or ``quote``.

    Returns
    -------
    Run, OfflineResult, CompetitiveRatio, Comparison or Decision
        By the command: `Comparison` for ``compare`` and ``replay``, `Decision` for ``quote``. Its
        ``to_dict`` gives what the file has, but for what the command has added, such as the
        instance's file.

    Raises
    ------
    InstanceError
        With the path of what is missing or wrong.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "run.json")
    ...     _ = path.write_text(json.dumps(run.to_dict()))
    ...     oasis.read_result(path)
    <Run: policy oasis, total utility 100.684, admitted 2 of 3 jobs>
    """
    return result_from_dict(read_json(path, (*RESULTS, SCHEDULES), "a result"))


def result_from_dict(data: Any) -> Any:
    """Build a result from the plain data of its document.

    Raises
    ------
    InstanceError
        With the path of what is missing or wrong.

    Examples
    --------
    >>> from oasis.simulator.result_file import result_from_dict
    >>> result_from_dict({"kind": "dream"})
    Traceback (most recent call last):
    oasis.model.errors.InstanceError: kind: expected one of run, quote, solve, ratio, compare, \
replay, got 'dream'
    """
    expected = f"expected one of {', '.join(READERS)}"
    if "kind" not in document.mapping(data):
        raise InstanceError("kind", f"missing; {expected}: the document of a command's --json")
    if not isinstance(data["kind"], str) or data["kind"] not in READERS:
        raise InstanceError("kind", f"{expected}, got {describe(data['kind'])}")
    module, _, name = READERS[data["kind"]].partition(":")
    return getattr(import_module(module), name).from_dict(data)
