"""The share of the optimum as a metric: what is exported, and what a failure leaves as it was."""

from __future__ import annotations

import json
import logging
import math
import signal
import sys
import time

import pytest

from experiments.cli.commands.kubernetes.certifying import (
    Certifier,
    report_command,
)
from experiments.evaluation.on_cluster import ACTUAL
from oasis.kubernetes.control.metrics import Metrics


def printing(document: object, code: int = 0) -> list[str]:
    program = f"import sys; print({json.dumps(document)!r}); sys.exit({code})"
    return [sys.executable, "-c", program]


def shares(metrics: Metrics) -> list[float | None]:
    value = metrics.registry.get_sample_value
    return [value("oasis_certified_share", {"end": end}) for end in ("lower", "upper")]


def document(**row: float | None) -> object:
    return {"policies": {ACTUAL: row}}


@pytest.mark.parametrize("code", [0, 3], ids=["proven", "interval"])
def test_both_ends_are_exported(code: int) -> None:
    metrics = Metrics()
    said = document(certified_share_lower=0.5, certified_share_upper=0.75)
    Certifier(printing(said, code), metrics).measure()
    assert shares(metrics) == [0.5, 0.75]
    assert metrics.registry.get_sample_value("oasis_certified_timestamp_seconds") > 1e9


def test_where_nothing_could_be_earned_there_is_no_share() -> None:
    metrics = Metrics()
    Certifier(printing(document(certified_share_lower=None)), metrics).measure()
    assert all(math.isnan(share) for share in shares(metrics))


def test_a_failure_is_one_line_and_keeps_the_last_share(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    said = document(certified_share_lower=0.5, certified_share_upper=0.75)
    Certifier(printing(said), metrics).measure()
    failing = [sys.executable, "-c", "import sys; sys.exit('oasis: no cluster')"]
    with caplog.at_level(logging.WARNING):
        Certifier(failing, metrics).measure()
    assert [record.getMessage() for record in caplog.records] == [
        "the share of the optimum was not measured: oasis: no cluster"
    ]
    assert shares(metrics) == [0.5, 0.75]


def test_only_the_leader_measures_and_an_end_does_not_wait_for_a_report() -> None:
    metrics = Metrics()
    said = document(certified_share_lower=0.5, certified_share_upper=0.75)
    with Certifier(printing(said), metrics, every=0.01):
        time.sleep(0.2)
    assert shares(metrics) == [None, None]
    endless = [sys.executable, "-c", "import time; time.sleep(600)"]
    with Certifier(endless, metrics, every=0.01) as certifier:
        certifier.is_leading = True
        while certifier._child is None:
            time.sleep(0.01)
    assert certifier._child.returncode == -signal.SIGKILL
    assert shares(metrics) == [None, None]


def test_the_command_limits_its_own_processor_time() -> None:
    _, _, program, *words = report_command(["--since", "7d"])
    assert "RLIMIT_CPU" in program
    assert words[:2] == ["kubernetes", "report"]
    assert words[-2:] == ["--since", "7d"]
