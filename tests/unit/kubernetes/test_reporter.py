"""Reports of training processes reach the controller in the form that it reads."""

from __future__ import annotations

import io
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy import reporter
from oasis.kubernetes.cluster.pods import Report, reported


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests of a pod of the name p."""
    for name, content in (("namespace", "ns\n"), ("token", "t0\n")):
        (tmp_path / name).write_text(content)
    found: list[Any] = []
    monkeypatch.setattr(reporter, "ACCOUNT", tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: cafile)
    monkeypatch.setattr(reporter, "urlopen", lambda made, **_: found.append(made) or io.BytesIO())
    for name, value in (("KUBERNETES_SERVICE_HOST", "h"), ("KUBERNETES_SERVICE_PORT", "6443")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POD_NAME", "p")
    return found


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ((12.5, -1e-7), Report(12.5, -1e-7)),
        ((1e7, None), Report(1e7, None)),
        ((None, 3.0), Report(None, 3.0)),
        ((0.0, 0.1), Report(0.0, 0.1)),
    ],
)
def test_what_is_reported_is_what_is_read(
    said: tuple[Any, Any], read: Report, sent: list[Any]
) -> None:
    reporter.report(*said)
    (made,) = sent
    assert (made.method, made.full_url) == ("PATCH", "https://h:6443/api/v1/namespaces/ns/pods/p")
    assert made.headers["Authorization"] == "Bearer t0"
    assert reported({"p": json.loads(made.data)}) == read


def test_what_is_no_number_is_refused(sent: list[Any]) -> None:
    with pytest.raises(ValueError, match="loss: expected a finite number, got nan"):
        reporter.report(loss=float("nan"))
    assert not sent


def test_the_file_needs_python_alone(tmp_path: Path) -> None:
    copy = tmp_path / "reporter.py"
    copy.write_text(Path(reporter.__file__).read_text())
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, "-I", "-S", str(copy)]
    subprocess.run(words, check=True, cwd=tmp_path, env=env)
