"""Results of commands, read from their JSON by the kind that each names."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from oasis.model.document import mapping
from oasis.model.errors import InstanceError
from oasis.model.file_kinds import RESULTS
from oasis.model.instance_file import read_json

# The class of each kind of document, whose `from_dict` reads it. Classes are named only, and
# imported when such a document is read: nothing here depends on them.
READERS = {
    "run": "oasis.simulator.result:Run",
    "quote": "oasis.model.decision:Decision",
    "solve": "offline.result:OfflineResult",
    "ratio": "experiments.evaluation.competitive_ratio:CompetitiveRatio",
    "compare": "experiments.evaluation.comparison:Comparison",
    "replay": "experiments.evaluation.comparison:Comparison",
    "whatif": "experiments.evaluation.whatif_result:WhatIf",
}


def read_result(path: str | os.PathLike[str]) -> Any:
    """Read a result that a command or ``to_dict`` wrote as JSON.

    Parameters
    ----------
    path : path
        File of ``-o`` or ``--json`` of ``oasis run``, ``solve``, ``ratio``, ``compare``,
        ``replay``, ``whatif`` or ``quote``.

    Returns
    -------
    Run, OfflineResult, CompetitiveRatio, Comparison, WhatIf or Decision
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
    return result_from_dict(read_json(path, RESULTS, "a result"))


def result_from_dict(data: Any) -> Any:
    """Build a result from the plain data of its document, by its `kind`."""
    expected = f"expected one of {', '.join(READERS)}"
    if "kind" not in mapping(data):
        raise InstanceError("kind", f"missing; {expected}: the document of a command's --json")
    if not isinstance(data["kind"], str) or data["kind"] not in READERS:
        raise InstanceError("kind", expected, data["kind"])
    module, _, name = READERS[data["kind"]].partition(":")
    return getattr(import_module(module), name).from_dict(data)
