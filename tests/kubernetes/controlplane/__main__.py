"""``python -m tests.kubernetes.controlplane``: a control plane until Ctrl-C, for looking around.

Prints one JSON line when it is ready: where the admin's kubeconfig, the logs and the audit log are,
and every process's id. ``--nodes 3 --gpus 8`` adds nodes node-0, node-1, ...
"""

from __future__ import annotations

import argparse
import json
import signal
import sys

from tests.kubernetes.cluster import room
from tests.kubernetes.controlplane.plane import StartError, control_plane


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=0, help="how many nodes to add")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of each of them")
    options = parser.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):  # shells let background jobs ignore Ctrl-C
        signal.signal(ending, signal.default_int_handler)
    try:
        with control_plane("controlplane") as plane:
            names = [f"node-{number}" for number in range(options.nodes)]
            for name in names:
                plane.nodes.add(name, room(options.gpus))
            plane.nodes.wait_ready(*names)
            about = {
                "kubeconfig": str(plane.admin.kubeconfig()),
                "url": plane.url,
                "directory": str(plane.directory),
                "audit_log": str(plane.audit_log),
                "pids": plane.pids(),
            }
            print(json.dumps(about), flush=True)  # noqa: T201
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except StartError as error:
        print(f"controlplane: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
