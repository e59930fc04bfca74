"""A result file that somebody has edited is refused by name, or still drawn; never a bug."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import oasis
from baselines import DRF, FIFO
from experiments.evaluation.comparison import compare, replay_each
from experiments.evaluation.competitive_ratio import competitive_ratio
from experiments.plotting.canvas import drawing_style
from experiments.plotting.files import picture_of
from experiments.report import sections
from experiments.report.sections import section_of
from oasis.model.errors import InputError, OasisError
from oasis.simulator import PlainJob, rigid_workload
from offline import solve

INSTANCE = oasis.generate("testbed", jobs=4, seed=1)
WRONG = [None, True, "x", -1, 1e300, 10**30, [], {}, [1], {"a": 1}]
Path = tuple[str | int, ...]


@cache
def documents() -> dict[str, Any]:
    """A result of each kind, as its file has it."""
    makers = {"fifo": lambda seed: FIFO(seed=seed), "drf": lambda *_: DRF()}
    jobs = [PlainJob("a", 0.0, 60.0, 1), PlainJob("b", 0.0, 30.0, 1)]
    about = {"trace": {"file": "jobs.csv", "sha256": "0"}, "reading": {}}
    run = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    assert run.outcome is not None
    found = {
        "run": run.to_dict() | {"utilisation": run.outcome.utilisation},
        "solve": solve(INSTANCE, time_limit=20).to_dict(),
        "ratio": competitive_ratio(INSTANCE, time_limit=20).to_dict(),
        "compare": compare(INSTANCE, {"fifo": FIFO}).to_dict(),
        "seeds": compare(INSTANCE, makers, {"fifo": [0, 1]}).to_dict(),
        "replay": replay_each(rigid_workload(jobs, 1, 1), {"fifo": {}}, about).to_dict(),
    }
    return {kind: json.loads(json.dumps(document)) for kind, document in found.items()}


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """Every part of a document, of lists the first alone."""
    if path:
        yield path
    parts: dict[Any, Any] = data if isinstance(data, dict) else {}
    if isinstance(data, list):
        parts = dict(enumerate(data[:1]))
    for name, part in parts.items():
        yield from places(part, (*path, name))


def changed(document: Any, path: Path, value: Any) -> Any:
    """A copy with another value there; `...` leaves the part out."""
    copied, (name, *rest) = copy.copy(document), path
    if rest:
        copied[name] = changed(document[name], tuple(rest), value)
    elif value is ...:
        del copied[name]
    else:
        copied[name] = value
    return copied


def told(document: Any) -> None:
    """Put it on a page, without an instance: what is not verified is read all the same."""
    section_of("result.json", document, None)


@pytest.mark.parametrize("kind", ["run", "solve", "ratio", "compare", "seeds", "replay"])
def test_a_part_of_another_type_is_bad_input(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # a picture takes as long as a hundred tables
    monkeypatch.setattr(sections, "picture_of", lambda *_: None)
    monkeypatch.setattr(sections, "picture", lambda *_: "")
    document = documents()[kind]
    told(document)
    refused = 0
    for path in places(document):
        for value in (..., *WRONG):
            try:
                told(changed(document, path, value))
            except OasisError:
                refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("run", "simulation.utilisation.worker.gpu", "x", "expected a finite number, got 'x'"),
        ("run", "utilisation.ps", True, "expected an object, got True"),
        ("run", "bounds.worker.log_ratio", [1.0], "expected 5 numbers, got [1.0]"),
        ("solve", "parameters", "x", "expected an object, got 'x'"),
        ("compare", "policies.fifo.p95_completion", {}, "expected a finite number, got {}"),
        ("compare", "policies.fifo.utilisation", 0, "expected an object, got 0"),
        ("compare", "policies.fifo.p95_completion", ..., "missing; this key is required"),
        ("compare", "policies.fifo.decision_seconds.median", ..., "missing; this key is required"),
        (
            "seeds",
            "policies.fifo.over_seeds.figures.finished.low",
            {},
            "expected a finite number, got {}",
        ),
        (
            "seeds",
            "policies.fifo.over_seeds.figures.finished",
            {"low": 2, "mean": 1, "high": 3},
            "expected low <= mean <= high, got [2, 1, 3]",
        ),
        ("replay", "trace.file", 5, "expected text, got 5"),
    ],
)
def test_the_part_that_is_wrong_is_named(kind: str, path: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        told(changed(documents()[kind], tuple(path.split(".")), value))
    assert (caught.value.field, caught.value.detail) == (path, message)


def test_a_damaged_comparison_is_not_drawn_either() -> None:
    damaged = changed(documents()["seeds"], ("policies", "fifo", "makespan"), [1])
    with drawing_style(None), pytest.raises(InputError, match=r"policies\.fifo\.makespan"):
        picture_of(damaged, "damaged", None)
