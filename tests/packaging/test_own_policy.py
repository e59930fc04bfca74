"""A policy of one's own on the command line: one line of blame, and runs that can be reproduced."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.commands import EXAMPLE, Oasis, assert_refused, shell

HERE = Path(__file__).parent
SOURCE = (HERE.parent / "recorded/files/mine.py").read_text(encoding="utf-8")
CLASS = "class P(Densest):\n"
BODY = CLASS + "    def decide(self, view):\n"
LINE = SOURCE.count("\n") + 1  # of CLASS in a file of both

FAULTS = tomllib.loads((HERE / "faulty_policies.toml").read_text(encoding="utf-8"))
READ = "durations read as seconds; median 7 s (--duration-unit)\n"


@pytest.fixture(name="run")
def run_without_how_a_trace_was_read(run: Oasis) -> Oasis:
    def call(*words: object) -> tuple[int, str, str]:
        code, out, err = run(*words)
        return code, out, err.removeprefix(READ)

    return call


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write ``mine.py`` in the working directory: the classes above and something more."""
    monkeypatch.chdir(tmp_path)
    Path("instance.json").write_bytes(EXAMPLE.read_bytes())
    Path("trace.csv").write_text("id,submitted,duration,gpus\na,0,9,1\nb,1,5,4\n", encoding="utf-8")

    def put(more: str = "") -> None:
        Path("mine.py").write_text(SOURCE + more, encoding="utf-8")

    put()
    return put


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_the_line(run: Oasis, write: Any, fault: str) -> None:
    one = FAULTS[fault]
    write(one["code"])
    # of the class, counted from 1
    place = (f"mine.py:{LINE + one['line'] - 1}: ",) if "line" in one else ()
    assert_refused(run("run", "instance.json", "--policy", "mine.py:P"), *place, one["says"])


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "instance.json", "--policies", "fifo,mine.py:P"),
        ("replay", "trace.csv", "--format", "plain", "--policies", "fifo,mine.py:P"),
        ("ratio", "instance.json", "--policy", "mine.py:P", "--method", "milp"),
    ],
)
def test_every_command_names_the_line_and_verbose_shows_the_traceback(
    run: Oasis, write: Any, words: tuple[str, ...]
) -> None:
    write(FAULTS["key"]["code"])
    assert_refused(
        run(*words), f"policy P: mine.py:{LINE + 2}: KeyError: 'gpu' in decide at time 0"
    )
    code, out, err = run(*words, "--verbose")
    assert (code, out) == (2, "")
    assert "Traceback (most recent call last):" in err
    assert err.splitlines()[-1].startswith(f"oasis: policy P: mine.py:{LINE + 2}: KeyError")


def test_a_module_that_cannot_be_imported_has_its_traceback_with_verbose(
    run: Oasis, write: Any
) -> None:
    Path("helping.py").write_text("x = 1\nx.absent\n", encoding="utf-8")
    write("import helping\n")
    words = ("run", "instance.json", "--policy", "mine.py:Densest")
    message = "got helping.py:2: AttributeError: 'int' object has no attribute 'absent'"
    assert_refused(run(*words), "--policy: expected a module that can be imported", message)
    assert "Traceback (most recent call last):" in run(*words, "--verbose")[2]


def test_ctrl_c_in_a_policy_is_one_line(run: Oasis, write: Any) -> None:
    write(BODY + "        raise KeyboardInterrupt\n")
    found = run("run", "instance.json", "--policy", "mine.py:P")
    assert found == (130, "", "oasis: interrupted\n")


def test_a_policy_that_would_be_called_for_ever_is_ended(
    run: Oasis, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oasis.driver.loop.MOST_IDLE_CALLS", 1000)
    write("class P(Idle):\n    slotted = True\n")
    refused = run("replay", "trace.csv", "--format", "plain", "--policies", "mine.py:P")
    message = "policy P: was called 1000 times while no job ran and no event was to come; 2 jobs"
    assert_refused(refused, message)
    assert run("run", "instance.json", "--policy", "mine.py:P")[0] == 0  # its horizon ends it


def test_a_fault_of_the_toolkit_stays_one(tmp_path: Path, write: Any) -> None:
    """Also under a class of one's own that has no part in it."""
    write("from baselines import FIFO\nclass P(FIFO):\n    pass\n")
    code = (
        "import baselines.queues as q\n"
        "exec(compile('def broken(*_):\\n    raise KeyError(1)', q.__file__, 'exec'), vars(q))\n"
        "q.Queued.decide = q.broken\n"
    )
    for name in ("fifo", f"{tmp_path}/mine.py:P"):
        found, out, err = shell("run", tmp_path / "instance.json", "--policy", name, code=code)
        assert (found, out) == (1, "")
        assert err.startswith("oasis: a bug: KeyError: 1; ")


# --- reproducing a run --------------------------------------------------------------------------


def made(run: Oasis, *words: str) -> dict[str, Any]:
    code, _, err = run(*words, "-o", "result.json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(Path("result.json").read_text(encoding="utf-8"))
    return found


def test_code_that_has_changed_is_refused_by_name(run: Oasis, write: Any) -> None:
    Path("least.py").write_text("LEAST = 1\n", encoding="utf-8")
    write("def later():\n    import least\n    return least.LEAST\n")
    made(run, "run", "instance.json", "--policy", "mine.py:Densest")
    Path("least.py").write_text("LEAST = 2\n", encoding="utf-8")
    message = "policy_files: least.py (module least) has changed since: expected sha256"
    assert_refused(run("run", "--from", "result.json"), "result.json: ", message)
    Path("least.py").unlink()
    assert_refused(
        run("run", "--from", "result.json"), "least.py (module least) is not there any more"
    )
    Path("least.py").write_text("LEAST = 1\n", encoding="utf-8")
    assert run("run", "--from", "result.json")[0] == 0
    write("# one line more\n")
    assert_refused(run("run", "--from", "result.json"), "is not there any more")
    Path("mine.py").unlink()
    assert_refused(run("run", "--from", "result.json"), "--from result.json: policy: expected")


@pytest.mark.parametrize(("file", "option"), [("table.txt", "table"), ("prices.json", "bounds")])
def test_a_file_that_an_option_names_is_part_of_the_run(
    run: Oasis, write: Any, file: str, option: str
) -> None:
    write(
        "from pathlib import Path\n" + CLASS + "    def __init__(self, table: str = 'table.txt'):\n"
        "        self.most = int(Path(table).read_text())\n"
    )
    Path("table.txt").write_text("2", encoding="utf-8")
    assert run("learn", "instance.json", "-o", "prices.json")[0] == 0
    own = ("--policy", "mine.py:P")
    words = own if option == "table" else ("--set", "oasis.bounds=prices.json")
    found = made(run, "run", "instance.json", *words)
    assert [one["of"] for one in found["policy_files"]][-1] == f"option {option}"
    assert run("run", "--from", "result.json")[0] == 0
    Path(file).write_text(f" {Path(file).read_text(encoding='utf-8')}", encoding="utf-8")
    changed = f"{file} (option {option}) has changed since"
    assert_refused(run("run", "--from", "result.json"), changed)


def test_what_is_not_recorded_shows_in_the_result(
    run: Oasis, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment variable, a seed from the clock: nothing says so before the run."""
    write(
        CLASS + "    def __init__(self):\n        import os\n"
        "        self.most = int(os.environ['MOST_WORKERS'])\n"
    )
    monkeypatch.setenv("MOST_WORKERS", "2")
    before = made(run, "run", "instance.json", "--policy", "mine.py:P")["total_utility"]
    assert run("run", "--from", "result.json")[0] == 0
    monkeypatch.setenv("MOST_WORKERS", "1")
    message = f"result.json: the run is not reproduced: total_utility was {before!r}, is "
    assert_refused(run("run", "--from", "result.json", "-o", "again.json"), message)
    assert not Path("again.json").exists()


def test_a_result_that_was_changed_by_hand_is_refused(run: Oasis, write: Any) -> None:
    def again() -> Any:
        Path("result.json").write_text(json.dumps(found), encoding="utf-8")
        return run("run", "--from", "result.json")

    found = made(run, "run", "instance.json", "--policy", "mine.py:Densest")
    del found["simulation"]["unfinished"]  # as in a result of an earlier version
    assert again()[0] == 0
    found["simulation"]["finished"] = 99
    assert_refused(again(), "not reproduced: simulation.finished was 99, is ")
    del found["policy_files"]
    assert_refused(again(), "does not say what code its policy was; expected policy_files")


def test_measured_times_in_a_report_do_not_count(run: Oasis, write: Any) -> None:
    write(CLASS + "    from time import time_ns\n    report = {'seconds': time_ns(), 'calls': 3}\n")
    made(run, "run", "instance.json", "--policy", "mine.py:P")
    write(CLASS + "    from time import time_ns\n    report = {'seconds': time_ns(), 'calls': 3}\n")
    assert run("run", "--from", "result.json")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        "compare instance.json --policies fifo,mine.py:Silent",
        "replay trace.csv --format plain --max-jobs 1 --policies fifo,mine.py:Silent",
        "ratio instance.json --policy mine.py:Silent --method colgen --work-limit 0.1",
        "run instance.json --policy mine.py:Silent",
    ],
)
def test_the_command_of_a_report_gives_the_same_result(run: Oasis, write: Any, words: str) -> None:
    given = (*words.split(), "--set", "mine.py:Silent.most=2")
    assert run(*given, "-o", "result.json")[0] in (0, 3)
    first = json.loads(Path("result.json").read_text(encoding="utf-8"))
    line = first.get("command", "oasis run --from result.json")
    assert "taught" not in line
    assert run(*shlex.split(line)[1:], "-o", "again.json")[0] in (0, 3)
    second = json.loads(Path("again.json").read_text(encoding="utf-8"))
    for key in ("policy", "parameters", "policy_options", "policy_files", "total_utility"):
        assert second.get(key) == first.get(key)
    rows, again = first.get("policies", {}), second.get("policies", {})
    for name, row in rows.items():
        for key in ("finished", "mean_completion", "parameters", "policy_files"):
            assert again[name].get(key) == row.get(key)
    if "policies" in first:
        assert first["policies"]["mine.py:Silent"]["parameters"] == {"taught": "by hand", "most": 2}
    write("# changed\n")
    code, _, err = run("report", "result.json", "-o", "page.html")
    assert code == 0
    assert "does not make it again: mine.py (module mine) has changed since" in err


# --- sweeps -------------------------------------------------------------------------------------


def test_a_failed_cell_names_the_line_and_changed_code_runs_again(run: Oasis, write: Any) -> None:
    grid = '[[instances]]\nfile = "instance.json"\n[[policies]]\nname = ["fifo", "mine.py:P"]\n'
    Path("grid.toml").write_text(grid, encoding="utf-8")
    words = ("sweep", "grid.toml", "--processes", "1")
    write(FAULTS["later"]["code"])
    code, _, err = run(*words)
    assert code == 4
    assert f"PolicyError: policy P: mine.py:{LINE + 2}: AssertionError: too late in decide" in err
    write(CLASS + "    most = 2\n")
    code, _, err = run(*words)
    assert code == 0
    assert "1 cell run, 1 recorded before" in err
    code, _, err = run(*words)
    assert "0 cells run, 2 recorded before" in err
    write(CLASS + "    def __init__(self, most: int = 1 // 0):\n        pass\n")
    assert_refused(run(*words), "grid.toml: ", f"mine.py:{LINE + 1}: ZeroDivisionError")
