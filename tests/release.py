"""Check that a release can be made of this tree: ``make release-check``.

Builds the source distribution, and the wheel from it; checks their metadata and CITATION.cff;
installs the wheel with its extras in an empty environment, in a folder where nothing of the tree
is, and runs the main job there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from oasis.version import __version__

ROOT = Path(__file__).parents[1]
NAME = "oasis_scheduler"


def main() -> None:
    """Run all steps; the first that fails ends the process with its error."""
    _check_versions()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        built = folder / "dist"
        _run("build", sys.executable, "-m", "build", "--outdir", built, ROOT)
        source, wheel = built / f"{NAME}-{__version__}.tar.gz", *built.glob("*.whl")
        _check_source(source)
        _run("metadata", sys.executable, "-m", "twine", "check", "--strict", source, wheel)
        _run("citation", sys.executable, "-m", "cffconvert.cli.cli", "--validate", cwd=ROOT)
        _check_installed(folder, wheel)
    print(f"oasis-scheduler {__version__}: ready to be released")  # noqa: T201


def _check_versions() -> None:
    """Check that the version, the citation and the changelog agree."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    if cited != [__version__]:
        sys.exit(f"CITATION.cff: expected version {__version__}, got {', '.join(cited)}")
    if f"\n## {__version__}" not in changes:
        sys.exit(f"CHANGELOG.md: expected a heading for {__version__}")


def _check_source(path: Path) -> None:
    """Check that the source distribution has all that a release needs."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("LICENSE", "README.md", "pyproject.toml", "oasis/examples/congested.json"):
        if needed not in names:
            sys.exit(f"{path.name}: expected {needed} in it")


def _check_installed(folder: Path, wheel: Path) -> None:
    """Do the main job in an environment that has the wheel and its requirements alone."""
    place, work = folder / "venv", folder / "work"
    work.mkdir()
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    _run("install alone", *pip, "install", wheel, cwd=work)
    _run("import", python, "-c", "import oasis; print(len(oasis.read_example().jobs))", cwd=work)
    _run("install", *pip, "install", f"{wheel}[all]", cwd=work)
    _run("requirements", *pip, "check", cwd=work)
    oasis = place / "bin" / "oasis"
    _run("version", oasis, "--version", cwd=work)
    _run("example", oasis, "example", "congested", "-o", "congested.json", cwd=work)
    said = _run("main job", oasis, "ratio", "congested.json", "-o", "ratio.json", cwd=work)
    if not re.search(r"^competitive ratio +1\.52797 \(proven\)$", said, re.MULTILINE):
        sys.exit(f"main job: expected a proven ratio of 1.52797, got\n{said}")
    _run("picture", oasis, "plot", "ratio.json", "-o", "ratio.pdf", cwd=work)
    _run("report", oasis, "report", "ratio.json", "-o", "report.html", cwd=work)


def _run(step: str, *words: object, cwd: Path | None = None) -> str:
    """Run a step without anything of this tree on its path; its standard output."""
    print(f"== {step}", flush=True)  # noqa: T201
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=own, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{step}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
