"""The ``oasis`` command without its extras, its reader or its terminal, and when it is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import oasis
from tests.packaging.commands import BLOCK, EXAMPLE, JOB, ROOT, SWEEP, assert_refused, python, shell


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("typer", "cli", ("run", EXAMPLE)),
        ("pulp", "solve", ("ratio", EXAMPLE)),
        ("highspy", "solve", ("solve", EXAMPLE)),
        ("matplotlib", "plot", ("run", EXAMPLE, "--plot", "run.png")),
        ("joblib", "sweep", ("sweep", SWEEP)),
        ("distributed", "dask", ("sweep", SWEEP, "--engine", "dask", "--scheduler", "tcp://h:1")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_missing_extra_is_one_line_that_says_what_to_install(
    module: str, extra: str, command: tuple[object, ...]
) -> None:
    result = shell(*command, code=BLOCK.format(name=module))
    assert_refused(result, f"pip install 'oasis-scheduler[{extra}]'")


@pytest.mark.parametrize("command", [("replay",), ("whatif",), ("import", "plain")])
def test_a_trace_without_pandas_says_what_to_install(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("id,submitted,duration,gpus\na,0,60,4\n", encoding="utf-8")
    result = shell(*command, path, "-o", tmp_path / "out.json", code=BLOCK.format(name="pandas"))
    assert_refused(result, "pip install 'oasis-scheduler[sweep]'")


@pytest.mark.parametrize("command", ["run", "quote"])
def test_commands_that_solve_nothing_need_no_solver(command: str) -> None:
    files = (EXAMPLE,) if command == "run" else (EXAMPLE, JOB)
    code, out, err = shell(command, *files, code=BLOCK.format(name="highspy"))
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize("words", ["run FILE --json", "run --help"])
def test_reader_that_leaves_early_is_no_error(small: Path, words: str) -> None:
    given = words.replace("FILE", str(small)).split()
    command = [sys.executable, "-m", "experiments.cli", *given]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


# --- whatever lies in the working directory -----------------------------------------------------


@pytest.fixture
def disturbed(tmp_path: Path) -> Path:
    """A folder with an instance, a grid, and folders called as ours."""
    for name in ("experiments", "offline", "baselines"):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    path = tmp_path / "small.json"
    oasis.write(oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1), path)
    (tmp_path / "grid.toml").write_text(
        'seeds = [0, 1]\n[[instances]]\nfile = "small.json"\n[[policies]]\nname = ["fifo", "drf"]\n'
    )
    return tmp_path


def test_the_installed_script_is_not_disturbed_by_folders_called_as_ours(disturbed: Path) -> None:
    script = disturbed / "bin" / "oasis"
    script.parent.mkdir()
    script.write_text("import sys\nfrom oasis.__main__ import main\nsys.exit(main())\n")
    # an empty entry of PYTHONPATH is the working directory, and comes before the installation
    for words in (["run", "small.json"], ["sweep", "grid.toml", "--processes", "2"]):
        found = python(script, *words, folder=disturbed, PYTHONPATH=f"{os.pathsep}{ROOT}")
        assert (found[0], "not this one" in found[2]) == (0, False), found


def test_folders_in_the_working_directory_are_not_taken_for_ours(
    disturbed: Path, tmp_path: Path
) -> None:
    path = disturbed / "small.json"
    for words in (["run"], ["ratio"], ["compare", "--policies", "fifo,drf"]):
        command, *options = words
        found = python("-m", "oasis", command, path, *options, folder=tmp_path)
        assert (found[0], "not this one" in found[2]) == (0, False), found


def test_the_version_alone_loads_no_command() -> None:
    program = (
        "import sys\n"
        "sys.argv = ['oasis', '--version']\n"
        "from oasis.__main__ import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    heavy = {'typer', 'rich', 'baselines', 'matplotlib', 'pandas', 'scipy', 'jinja2'}\n"
        "    print(*(heavy & set(sys.modules)))\n"
    )
    assert python("-c", program) == (0, f"oasis-scheduler {oasis.__version__}\n\n", "")
