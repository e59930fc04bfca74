"""The chart, the image and the examples are those of this version."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from oasis import __version__
from tests.builders import policies
from tests.packaging.commands import ROOT, Oasis, shell

INSTALL = ("kubernetes", "install", "--image", "here/oasis:1")
DEPLOY, CHART = ROOT / "deploy", ROOT / "oasis/kubernetes/chart"


def objects(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def container() -> Any:
    """That of the controller, as the command installs it."""
    code, out, err = shell(*INSTALL)
    assert (code, err) == (0, "")
    (found,) = list(yaml.safe_load_all(out))[-1]["spec"]["template"]["spec"]["containers"]
    return found


def test_a_value_of_the_chart_may_be_what_it_is(container: Any) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(values, schema)
    assert values.keys() | {"global"} == schema["properties"].keys()
    assert schema["properties"]["policy"]["enum"] == ["", *policies()]
    assert values["resources"] == container["resources"]


def test_chart_and_kustomize_base_are_of_this_version_and_complete() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    text = (CHART / "controller.yaml").read_text(encoding="utf-8")
    assert f" image: oasis-scheduler:{__version__}\n" in text
    base = yaml.safe_load((CHART / "kustomization.yaml").read_text(encoding="utf-8"))
    files = {path.relative_to(CHART).as_posix() for path in CHART.glob("shared/*.yaml")}
    assert sorted(base["resources"]) == sorted([*files, "controller.yaml"])
    template = (CHART / "templates/controller.yaml").read_text(encoding="utf-8")
    err = shell(*INSTALL, "--argument=--metrics-port=1")[2]
    taken = err.partition("expected none of ")[2].partition(", got ")[0].split(", ")
    assert len(taken) > 1
    assert all(flag.removeprefix("--") in template for flag in taken)


def recipe() -> list[tuple[str, str]]:
    """Instructions of the Containerfile with what follows them."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def copied() -> list[str]:
    """Files that the image is built from."""
    return [
        name
        for word, rest in recipe()
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    ]


def test_the_image_has_a_pinned_base_no_root_and_all_packages(container: Any) -> None:
    steps = recipe()
    (base,) = (rest for word, rest in steps if word == "ARG")
    assert re.fullmatch(r"PYTHON=docker\.io/library/python:3\.\d+\.\d+-slim-\w+", base)
    assert {rest.split()[0] for word, rest in steps if word == "FROM"} == {"${PYTHON}"}
    found = dict(steps)  # the last of each, as engines take them
    assert found["USER"] == "65532:65532"
    assert json.loads(found["CMD"]) == container["args"][:2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {
        name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]
    }
    named = {project["project"]["readme"], *project["project"]["license-files"]}
    assert set(copied()) == packages | named | {"pyproject.toml"}
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in sent if line.startswith("!")} == set(copied())


@pytest.mark.nightly
def test_the_image_s_command_is_installed_by_the_recipe_s_line(tmp_path: Path) -> None:
    """All of the recipe that needs no container engine, in an empty environment."""
    for name in copied():
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (line,) = (rest for word, rest in recipe() if word == "RUN")
    (entry,) = json.loads(dict(recipe())["ENTRYPOINT"])
    place = str(tmp_path / "opt")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    run = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    line = line.replace("/opt/oasis", place).replace("python ", f"{sys.executable} ", 1)
    run(["sh", "-c", line], check=True)
    oasis = entry.replace("/opt/oasis", place)
    words = ["kubernetes", "run", "--policy=dorm", "--kubeconfig=none"]
    done = run([oasis, *words], check=False)
    assert done.stderr == "oasis: --kubeconfig: expected a file, got none\n"
    printed = run([oasis, *INSTALL], check=True).stdout
    assert printed == shell(*INSTALL)[1]


@pytest.mark.parametrize("engine", ["podman", "docker", "buildah"])
def test_one_command_builds_the_image_and_pushes_it(engine: str, tmp_path: Path) -> None:
    path = tmp_path / engine
    path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n', encoding="utf-8")
    path.chmod(0o755)
    for name in ("sh", "make"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    run = partial(
        subprocess.run, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    run(["make", "image", "IMAGE=there/oasis:1"], check=True)
    assert (tmp_path / "said").read_text(encoding="utf-8").splitlines() == [
        "build --file deploy/Containerfile --tag there/oasis:1 .",
        "push there/oasis:1",
    ]
    path.unlink()
    missing = run(["make", "image", "IMAGE=there/oasis:1"], check=False)
    assert missing.stderr.startswith("make: expected podman, docker or buildah\n")
    nameless = run(["make", "image"], check=False)
    assert nameless.stderr.startswith("make: expected IMAGE=registry/name:tag\n")


def test_install_prints_what_is_shipped() -> None:
    code, out, err = shell(*INSTALL)
    assert (code, err) == (0, "")
    *printed, deployment = yaml.safe_load_all(out)
    *shipped, controller = (
        made
        for path in (*sorted(CHART.glob("shared/*.yaml")), CHART / "controller.yaml")
        for made in objects(path)
    )
    assert sorted(map(str, printed)) == sorted(map(str, shipped))
    (container,) = controller["spec"]["template"]["spec"]["containers"]
    container["image"] = "here/oasis:1"
    assert deployment == controller


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
