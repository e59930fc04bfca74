"""``-o`` and ``--plot``: through devices and pipes, refused before the work, never the result lost.

The commands run in this process, or in one of their own where their standard output or a limit on
files is what is tried, and only ever write to a temporary directory.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oasis
from tests.packaging import commands
from tests.packaging.commands import Oasis, Result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")

INSTANCE = "instance.json"
TRACE = "id,submitted,duration,gpus\na,0,60,1\nb,10,60,2\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-03 00:00:00,3600,2,7200,vc1\n"
GRID = 'seeds = [0]\n[[instances]]\npreset = "testbed"\njobs = 3\n[[policies]]\nname = "drf"\n'
SMALL = ("generate", "--jobs", "2", "--worker-servers", "1", "--ps-servers", "1", "--horizon", "9")
FIGURE = ("figure", "fig3", "--size", 0.04, "--seeds", 1, "--policies", "drf", "--job-counts", 3)

RESULTS: dict[str, tuple[object, ...]] = {
    "run": ("run", INSTANCE),
    "compare": ("compare", INSTANCE, "--policies", "fifo"),
    "replay": ("replay", "trace.csv", "--policies", "fifo"),
    "solve": ("solve", INSTANCE, "--method", "milp", "--time-limit", "inf"),
    "ratio": ("ratio", INSTANCE, "--method", "milp", "--time-limit", "inf"),
}
WRITERS = {**RESULTS, "generate": SMALL, "import": ("import", "philly", "philly.csv")}
DRAWERS = ("run", "compare", "ratio")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sizes = {"jobs": 2, "worker_servers": 1, "ps_servers": 1, "horizon": 9}
    oasis.write(oasis.generate("testbed", **sizes, seed=1), tmp_path / INSTANCE)
    (tmp_path / "trace.csv").write_text(TRACE, encoding="utf-8")
    (tmp_path / "philly.csv").write_text(PHILLY, encoding="utf-8")
    (tmp_path / "grid.toml").write_text(GRID, encoding="utf-8")
    return tmp_path


def shell(folder: Path, *arguments: object, **options: Any) -> Result:
    """Run the command in `folder`, in a process of its own."""
    return commands.shell(*arguments, folder=folder, COLUMNS="100", **options)


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch, run: Oasis) -> Oasis:
    """Run the command in `folder` within this process, which is quicker."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    return run


def unmeasured(text: str) -> Any:
    """A document without the numbers that differ from run to run."""
    measured = ("seconds", "history", "jobs_per_second")

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {k: v for k, v in value.items() if not any(word in k for word in measured)}
            return {key: strip(entry) for key, entry in kept.items()}
        return [strip(entry) for entry in value] if isinstance(value, list) else value

    return strip(json.loads(text, parse_constant=pytest.fail))  # NaN and infinity are not JSON


# --- standard output ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_a_dash_puts_the_document_and_nothing_else_on_standard_output(
    folder: Path, call: Callable[..., Result], name: str
) -> None:
    before = sorted(os.listdir(folder))
    code, out, _ = call(*WRITERS[name], "-o", "-")
    assert code == 0
    assert sorted(os.listdir(folder)) == before
    assert call(*WRITERS[name], "-o", "file.json")[0] == 0
    assert unmeasured(out) == unmeasured((folder / "file.json").read_text(encoding="utf-8"))
    if name in RESULTS:
        both = call(*WRITERS[name], "--json", "-o", "-")
        assert unmeasured(both[1]) == unmeasured(out)
    assert ('"time_limit": null' in out) == (name in ("solve", "ratio"))


@pytest.mark.parametrize("redirected", [False, True])
@pytest.mark.parametrize("name", ["run", "generate"])
def test_a_name_of_standard_output_is_as_good_as_a_dash(
    folder: Path, name: str, redirected: bool
) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    link = folder / "stdout"  # as /dev/stdout is made
    link.symlink_to("/proc/self/fd/1")
    captured = folder / "captured"
    with captured.open("wb") as stream:
        where = stream if redirected else subprocess.PIPE
        code, out, _ = shell(folder, *WRITERS[name], "-o", link, stdout=where)
    json.loads(captured.read_text(encoding="utf-8") if redirected else out)
    assert code == 0
    assert link.is_symlink()
    assert os.readlink(link) == "/proc/self/fd/1"


# --- pipes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run", "generate"])
def test_a_pipe_whose_reader_leaves_is_an_error_with_its_name(folder: Path, name: str) -> None:
    os.mkfifo(folder / "fifo")
    # opened for reading while the command opens it, and closed before it writes
    code = """
import os, oasis.model.files
reader = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
opened = os.open
def leave(name, *rest, **more):
    descriptor = opened(name, *rest, **more)
    if str(name) == "fifo":
        os.close(reader)
    return descriptor
os.open = leave
"""
    status, out, err = shell(folder, *WRITERS[name], "-o", "fifo", code=code)
    assert (status, err) == (2, "oasis: fifo: Broken pipe\n")
    assert ("total utility" in out) == (name == "run")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("pipe")])
def test_a_sweep_is_not_written_into_a_pipe(
    folder: Path, call: Callable[..., Result], make: Callable[[Path], None]
) -> None:
    os.mkfifo(folder / "pipe")
    make(folder / "out.parquet")
    before = sorted(os.listdir(folder))
    code, out, err = call("sweep", "grid.toml", "-o", "out.parquet")
    assert (code, out, err) == (2, "", "oasis: out.parquet: expected a regular file\n")
    assert sorted(os.listdir(folder)) == before


# --- refused before the work -------------------------------------------------------------------

BAD_TARGETS = {
    "none/a.svg": "oasis: none/a.svg: none: No such directory\n",
    "link.svg": "oasis: link.svg: {tmp}/none: No such directory\n",
}


@pytest.mark.parametrize("target", BAD_TARGETS)
@pytest.mark.parametrize(
    ("name", "option"),
    [*((name, "-o") for name in WRITERS), *((name, "--plot") for name in DRAWERS)],
)
def test_what_cannot_be_written_is_refused_before_anything_is_read(
    folder: Path, call: Callable[..., Result], name: str, option: str, target: str
) -> None:
    (folder / "link.svg").symlink_to(Path("none", "a"))
    before = sorted(os.listdir(folder))
    words = ["absent.json" if word == INSTANCE else str(word) for word in WRITERS[name]]
    expected = BAD_TARGETS[target].replace("{tmp}", str(folder))
    assert call(*words, option, target) == (2, "", expected)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".svg"])
def test_each_file_of_a_figure_is_checked_before_its_runs(
    folder: Path, call: Callable[..., Result], ending: str
) -> None:
    taken = folder / "figures" / f"fig3{ending}"
    taken.mkdir(parents=True)
    code, out, err = call(*FIGURE)
    assert (code, out, err) == (2, "", f"oasis: figures/fig3{ending}: Is a directory\n")
    assert [path.name for path in taken.parent.iterdir()] == [taken.name]


# --- what fails only when it is written ---------------------------------------------------------

# A file of code that is cut off at the limit would be a damaged one to later runs.
SMALL_FILES = """\
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
"""


@pytest.mark.parametrize("name", WRITERS)
def test_the_result_is_printed_although_it_cannot_be_written(
    folder: Path, call: Callable[..., Result], name: str
) -> None:
    (folder / "out.json").write_text("old", encoding="utf-8")
    before = sorted(os.listdir(folder))
    code, out, err = shell(folder, *WRITERS[name], "-o", "out.json", code=SMALL_FILES)
    assert code == 2
    assert err.splitlines()[-1] == "oasis: out.json: File too large"
    assert (out != "") == (name in RESULTS)
    assert sorted(os.listdir(folder)) == before
    assert (folder / "out.json").read_text(encoding="utf-8") == "old"
    if name in RESULTS:
        _, printed, _ = call(*WRITERS[name])
        assert [line.split()[:1] for line in out.splitlines()] == [
            line.split()[:1] for line in printed.splitlines()
        ]


def test_a_file_that_could_not_be_written_is_named_after_the_document(folder: Path) -> None:
    options = ("--json", "-o", "out.json", "--plot", "out.svg")
    code, out, err = shell(folder, *RESULTS["run"], *options, code=SMALL_FILES)
    assert (code, err) == (2, "oasis: out.json: File too large; out.svg: File too large\n")
    assert json.loads(out)["policy"] == "oasis"
    assert not {"out.json", "out.svg"} & set(os.listdir(folder))


def test_an_unwritten_file_is_said_even_to_a_reader_who_leaves_early(folder: Path) -> None:
    ends = os.pipe()
    os.close(ends[0])
    with open(ends[1], "wb") as gone:
        options = ("-o", "out.json")
        code, _, err = shell(folder, *RESULTS["run"], *options, code=SMALL_FILES, stdout=gone)
    assert (code, err) == (2, "oasis: out.json: File too large\n")


@pytest.mark.parametrize(
    ("function", "name", "others"),
    [
        ("sweep.run.write_table", "fig3.parquet", ["fig3.csv", "fig3.svg"]),
        ("figures.figure.write_csv", "fig3.csv", ["fig3.parquet", "fig3.svg"]),
        ("figures.figure.save", "fig3.svg", ["fig3.parquet", "fig3.csv"]),
        ("sweep.run.write_table", "out.parquet", []),
    ],
)
def test_what_a_full_disk_cannot_take_is_printed_and_the_rest_is_written(
    folder: Path,
    call: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    name: str,
    others: list[str],
) -> None:
    path = f"figures/{name}" if others else name
    sweep = ("sweep", "grid.toml", "-o", name, "--processes", "1")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with monkeypatch.context() as patch:
        patch.setattr(f"experiments.{function}", full)
        status, out, err = call(*(FIGURE if others else sweep))
    assert (status, "drf" in out) == (2, True)
    written = f"wrote {', '.join(f'figures/{each}' for each in others)}"
    kept = f"could not write {name}: 1 cell run, 0 recorded before"
    said = f"oasis: {path}: No space left on device"
    assert err.splitlines() == [written if others else kept, said]
    assert all((folder / "figures" / other).is_file() for other in others)
    assert not (folder / path).exists()
    if not others:  # its cells are kept
        assert call(*sweep) == (0, out, f"wrote {name}: 0 cells run, 1 recorded before\n")


# --- Ctrl-C ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "signals"), [("run", 1), ("solve", 2)])
def test_ctrl_c_while_writing_leaves_nothing_behind(folder: Path, name: str, signals: int) -> None:
    code = f"""
import os, signal
def interrupt(*_):
    for _ in range({signals}):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass  # the handler runs between two steps
os.replace = interrupt
"""
    before = sorted(os.listdir(folder))
    status, out, err = shell(folder, *RESULTS[name], "-o", "out.json", code=code)
    assert (status, out) == (130, "")
    assert err.startswith("oasis: ")
    assert sorted(os.listdir(folder)) == before
