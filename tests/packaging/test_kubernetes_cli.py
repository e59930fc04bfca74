"""``oasis kubernetes`` without a cluster: what can be said before one is asked."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import yaml

from oasis.kubernetes.objects.manifests import own, shared
from tests.packaging.commands import Oasis, shell


def test_install_prints_what_is_shipped() -> None:
    code, out, err = shell("kubernetes", "install", "--image", "here/oasis:1")
    assert (code, err) == (0, "")
    assert list(yaml.safe_load_all(out)) == [*shared(), *own(image="here/oasis:1")]


def test_a_port_that_is_taken_is_named(run: Oasis, tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    kubeconfig = tmp_path / "config"
    found = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "x"}
    kubeconfig.write_text(json.dumps(found), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("run", "--policy", "fifo", "--metrics-port", port)
        code, out, err = run("kubernetes", *words, "--kubeconfig", str(kubeconfig))
    assert (code, out) == (2, "")
    assert err.startswith("oasis: --metrics-port: expected a free port: ")
