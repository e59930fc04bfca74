"""``python -m tests.kubernetes.controlplane.build``: builds the control plane and Helm, once.

Prints their paths. Building from nothing takes ten minutes of two cores and 2.5 GB of
memory; afterwards it is a look into the cache. With the word ``kueue`` it builds Kueue and the
controller of JobSets too: ten minutes of processor time more.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.kubernetes.controlplane.gobuild import (
    GoBuildError,
    GoMissingError,
    GoProgram,
    cached,
    ensure,
)

KUBERNETES = "v1.36.3"
KWOK = "v0.8.0"
_HERE = Path(__file__).resolve().parent


# Linker flags of the official builds; without them, the processes call themselves v0.0.0, and
# Helm's charts meet a Kubernetes 1.20.
_MAJOR, _MINOR, _ = KUBERNETES.removeprefix("v").split(".")
_VALUES = {"gitVersion": KUBERNETES, "gitMajor": _MAJOR, "gitMinor": _MINOR}
_VALUES |= {"gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z"}
_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_LINKED = [(f"{package}.{name}", text) for package in _PACKAGES for name, text in _VALUES.items()]
_LINKED_HELM = tuple(
    (f"helm.sh/helm/v3/pkg/{package}.k8sVersion{name}", value)
    for package in ("lint/rules", "chartutil")
    for name, value in (("Major", _MAJOR), ("Minor", _MINOR))
)
_LINKED.append(("sigs.k8s.io/kwok/pkg/consts.Version", KWOK))

CONTROLPLANE = GoProgram("controlplane", _HERE / "box", linked=tuple(_LINKED))
JOBSET = GoProgram("jobset", _HERE / "jobset", "sigs.k8s.io/jobset")
KUEUE = GoProgram("kueue", _HERE / "kueue", "sigs.k8s.io/kueue/cmd/kueue")
TRAINER = GoProgram("trainer", _HERE / "trainer")
HELM = GoProgram("helm", _HERE / "helm", "helm.sh/helm/v3/cmd/helm", _LINKED_HELM)


def main() -> int:
    try:
        for program in (CONTROLPLANE, HELM, *((KUEUE, JOBSET) if "kueue" in sys.argv else ())):
            begun = time.monotonic()
            if cached(program) is None:
                print(f"{program.name}: is built now, for minutes", flush=True)  # noqa: T201
            print(ensure(program), f"({time.monotonic() - begun:.0f} s)")  # noqa: T201
    except (GoMissingError, GoBuildError) as error:
        print(f"kubernetes tests: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
