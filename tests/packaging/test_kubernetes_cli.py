"""``oasis kubernetes`` without a cluster: what can be said before one is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.packaging.commands import Oasis, shell

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_install_prints_what_is_shipped() -> None:
    code, out, err = shell("kubernetes", "install")
    assert (code, err) == (0, "")
    assert out == (DEPLOY / "oasis.yaml").read_text(encoding="utf-8")


def test_install_takes_namespace_and_arguments(run: Oasis) -> None:
    words = ("--system-namespace", "ml", "--argument=--policy=fifo")
    _, out, _ = run("kubernetes", "install", *words)
    made = list(yaml.safe_load_all(out))
    assert made[-1]["metadata"]["namespace"] == "ml"
    assert made[-1]["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--policy=fifo"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--policy", "magic"), "--policy: expected one of"),
        (("run",), "--bounds: expected a file with U and L"),
        (("run", "--policy", "fifo", "--slot-seconds", "0"), "--slot-seconds: expected a finite"),
        (
            ("run", "--policy", "fifo", "--startup-seconds", "60"),
            "--startup-seconds: expected less than a slot, 60, got 60",
        ),
        (("run", "--policy", "fifo", "--ps-share", "2"), "--ps-share: expected a number between"),
        (("run", "--policy", "fifo", "--set", "las.line=x"), "--set las.line: expected an option"),
        (("status", "--kubeconfig", "/nowhere"), "--kubeconfig: expected a file, got /nowhere"),
        (("quote", "missing.yaml"), "missing.yaml"),
    ],
)
def test_bad_usage_is_one_line_and_2(run: Oasis, words: tuple[str, ...], message: str) -> None:
    code, out, err = run("kubernetes", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"oasis: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod\n", "kind: expected OasisJob"),
        ("kind: OasisJob\n", "metadata.name: expected a name"),
        ("a: [\n", "expected YAML"),
    ],
)
def test_a_file_that_holds_no_job_is_named(
    run: Oasis, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    code, _, err = run("kubernetes", "quote", path)
    assert code == 2
    assert err.startswith(f"oasis: {path}: {message}")
