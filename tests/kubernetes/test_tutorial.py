"""The commands of the pages on Kubernetes, as they stand there, on a control plane of its own.

The pods of the Deployment that it installs are only played here, so the container of one is run:
its arguments, with its service account and the rights that the tutorial installed.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.kubernetes.cluster import room
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.names import CONTROLLER, SYSTEM
from tests.kubernetes.tutorial.page import File, carry_out, container, environment, steps


def test_the_pages_say_what_is_true(controlplane_binary: Path, words: Path, tmp_path: Path) -> None:
    first, *rest = steps()
    with ControlPlane(controlplane_binary) as plane:
        names = [f"node-{k}" for k in range(3)]
        for name in names:
            plane.nodes.add(name, room(4))
        plane.nodes.wait_ready(*names)
        reader = environment(words, plane.admin.kubeconfig())
        assert not isinstance(first, File)
        assert first.line.startswith("oasis kubernetes install")
        assert carry_out(first, tmp_path, reader) is None
        log = tmp_path / "controller.log"
        with ExitStack() as kubelet:
            kubelet.enter_context(container(plane, words, log))
            for step in rest:
                if isinstance(step, File):
                    (tmp_path / step.name).write_text(step.text, encoding="utf-8")
                    continue
                if "--own" in step.line:
                    kubelet.close()  # as a real one does when the Deployment goes
                instead = carry_out(step, tmp_path, reader)
                assert instead is None, f"{instead}\n\nexpected:\n{step.shown}\n{log.read_text()}"
        account = plane.service_account(CONTROLLER, SYSTEM)
        assert not denied(plane.requests(account))
