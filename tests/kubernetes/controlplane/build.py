"""``python -m tests.kubernetes.controlplane.build``: builds the control plane and Helm, once.

Prints their paths. Building from nothing takes ten minutes of two cores and 2.5 GB of
memory; afterwards it is a look into the cache, whose key is a hash of all that decides the bytes of
a program. With the word ``kueue`` it builds Kueue and the controller of JobSets too: ten minutes of
processor time more. Needs nothing but the standard library, so that a fresh clone can start
building before its Python environment is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CACHE_VARIABLE = "OASIS_CONTROLPLANE_CACHE"
_INSTALLED_BY_DEFAULT = Path("/usr/local/go/bin/go")
# The same bytes on every machine: no C compiler, no paths, no version control in the binary.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}


class GoMissingError(Exception):
    """There is no Go to build with, and the cache holds no binary of the same sources."""


class GoBuildError(Exception):
    """Go is there and could not build the program."""


@dataclass(frozen=True)
class GoProgram:
    """A main package in a directory with its own go.mod and go.sum.

    `module` is the directory, `package` what to build seen from there, `linked` the values that
    the linker sets, by the full name of their variable.
    """

    name: str
    module: Path
    package: str = "."
    linked: tuple[tuple[str, str], ...] = ()

    def arguments(self) -> list[str]:
        """Arguments of ``go build`` that decide the bytes."""
        values = "".join(f" -X {variable}={value}" for variable, value in self.linked)
        return ["-ldflags", "-s -w" + values, self.package]

    def sources(self) -> str:
        """Hash of go.mod, go.sum, the Go files, and how they are built."""
        files = [self.module / "go.mod", self.module / "go.sum", *sorted(self.module.glob("*.go"))]
        digest = hashlib.sha256(repr((self.arguments(), sorted(_ENVIRONMENT.items()))).encode())
        for file in files:
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Directory of built programs: $OASIS_CONTROLPLANE_CACHE, or ~/.cache/oasis-controlplane."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "oasis-controlplane")


def cached(program: GoProgram) -> Path | None:
    """The binary of exactly these sources, or None; without Go, whichever Go built it."""
    found = sorted(_homes(program, _version(program) if find_go() else "*"))
    return found[-1] if found else None


def ensure(program: GoProgram) -> Path:
    """The binary of `program`: from the cache, or built now. Of several callers, one builds."""
    if binary := cached(program):
        return binary
    home = cache_directory() / f"{program.name}-{program.sources()}-{_version(program)}"
    home.mkdir(parents=True, exist_ok=True)
    with (cache_directory() / f"{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed
        if binary := cached(program):
            return binary
        unfinished = home / f"{program.name}.unfinished"
        _go(program, "build", "-o", str(unfinished), *program.arguments())
        return unfinished.replace(home / program.name)


def find_go() -> str | None:
    """The go command: on the PATH, otherwise where Go's own installer puts it."""
    default = str(_INSTALLED_BY_DEFAULT)
    return shutil.which("go") or (default if os.access(default, os.X_OK) else None)


def module_directory(program: GoProgram, module: str) -> Path:
    """Directory of `module` in the module cache, in the version that `program` is built from."""
    return Path(_go(program, "list", "-m", "-f", "{{.Dir}}", module).strip())


def _homes(program: GoProgram, version: str) -> Iterator[Path]:
    return cache_directory().glob(f"{program.name}-{program.sources()}-{version}/{program.name}")


def _version(program: GoProgram) -> str:
    return "-".join(_go(program, "env", "GOVERSION", "GOARCH").split())


def _go(program: GoProgram, *arguments: str) -> str:
    go = find_go()
    if go is None:
        raise GoMissingError(
            f"{program.name} is built with Go, which is neither on the PATH nor in"
            f" {_INSTALLED_BY_DEFAULT.parent} (https://go.dev/dl), and no built one is in"
            f" {cache_directory()}"
        )
    done = subprocess.run(
        [go, *arguments],
        cwd=program.module,
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        command = " ".join(["go", *arguments[:2]])
        raise GoBuildError(f"{program.name}: `{command}` failed: {done.stderr.strip()}")
    return done.stdout


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
