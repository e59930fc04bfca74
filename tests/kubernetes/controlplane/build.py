"""``python -m tests.kubernetes.controlplane.build``: builds the control plane, or finds it built.

Prints the binary's path. Building from nothing takes ten minutes of two cores and 2.5 GB of
memory; afterwards it is a look into the cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kubernetes.controlplane.gobuild import GoBuildError, GoMissingError, GoProgram, ensure

KUBERNETES = "v1.36.3"
KWOK = "v0.8.0"
_MODULE = Path(__file__).resolve().parent / "box"


def _versions() -> tuple[tuple[str, str], ...]:
    """What the official builds link in; without it, the processes call themselves v0.0.0."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    values |= {"gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    linked = [
        (f"{package}.{name}", value) for package in packages for name, value in values.items()
    ]
    return (*linked, ("sigs.k8s.io/kwok/pkg/consts.Version", KWOK))


CONTROLPLANE = GoProgram("controlplane", _MODULE, linked=_versions())


def main() -> int:
    try:
        print(ensure(CONTROLPLANE))  # noqa: T201
    except (GoMissingError, GoBuildError) as error:
        print(f"kubernetes tests: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
