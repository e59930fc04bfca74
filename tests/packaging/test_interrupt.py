"""Ctrl-C: real processes and real signals, at whatever moment; the interval so far, and 3."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import oasis
from tests.builders import exit_code
from tests.packaging.commands import ROOT, Result, python, shell

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

# Signals itself some seconds after it has begun to solve, or the phase named first, and says when.
PROGRAM = """
import os, signal, sys, threading, time
ending = signal.Signals[sys.argv.pop(1)]
from experiments.cli.interrupt import CtrlC
from dataclasses import replace
from offline import BendersParams
from offline.benders import decomposition
from offline.benders.solve import Benders
from offline.state import SolveState

awaited, delays = sys.argv.pop(1), [float(word) for word in sys.argv.pop(1).split(",")]
enter, begin = CtrlC.__enter__, SolveState.enter
begun = threading.Event()
if awaited:  # the sooner it gets there
    size = 10**9 if awaited == "master, whole counts" else 0
    decomposition.MASTER_SHARE = 0.1
    params = BendersParams(search_limit=0.02, pays=1.0, whole_size=size)
    Benders.__init__ = lambda self, _: setattr(self, "params", params)

def noted(self, phase):
    begin(self, phase)
    if phase == awaited:
        begun.set()

def armed(self):
    result = enter(self)
    def send():
        if awaited:
            begun.wait()
        for delay in delays:
            time.sleep(delay)
            os.write(2, f"sent {time.time()}\\n".encode())
            os.kill(os.getpid(), ending)
    threading.Thread(target=send, daemon=True).start()
    return result

CtrlC.__enter__, SolveState.enter = armed, noted
"""

PROMPT_SECONDS = 20.0  # HiGHS may need two, a loaded machine more


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 jobs on 20 + 20 servers over 20 slots: no method proves it within a minute."""
    path = tmp_path_factory.mktemp("interrupt") / "busy.json"
    sizes = {"jobs": 40, "worker_servers": 20, "ps_servers": 20, "horizon": 20}
    oasis.write(oasis.generate("calibrated", **sizes, seed=1), path)
    return path


def interrupted(delays: str, *arguments: object, phase: str = "", ending: str = "SIGINT") -> Result:
    return shell(ending, phase, delays, *arguments, code=PROGRAM)


def stopped(
    busy: Path,
    delay: float,
    command: str,
    *options: str,
    phase: str = "",
    ending: str = "SIGINT",
) -> dict[str, Any]:
    words = (command, busy, *options, "--json")
    code, out, err = interrupted(str(delay), *words, phase=phase, ending=ending)
    ended = time.time()
    sent = [float(line.split()[1]) for line in err.splitlines() if line.startswith("sent")]
    assert code == 3, err
    assert sent, "never got there"
    assert ended - sent[0] < PROMPT_SECONDS
    assert "stopping with what is known so far" in err
    assert "Traceback" not in err
    document: dict[str, Any] = json.loads(out)
    assert document["status"] == "interrupted"
    assert 0 <= document["objective"] <= document["upper_bound"]
    assert document["bound_by"]
    return document


# What is solved how, within the first 0.1 s of a phase, or so many seconds after the beginning.
# OASiS decides within the first 0.1 s, the compact model is built by 0.7 s. The limit sets how long
# the phases before take: a few seconds in all, and 60 for the first.
LP = "configuration LP"  # the first phase of column generation after OASiS's schedules
WHEN = [
    *(("auto", "", 0.0, "SIGINT"), ("milp", "", 0.03, "SIGINT"), ("milp", "", 0.4, "SIGINT")),
    *(("colgen", LP, 0.3, ending) for ending in ("SIGINT", "SIGTERM")),
    ("benders --time-limit 60", LP, 0.1, "SIGINT"),
    ("benders --time-limit 5", "cutting planes", 0.1, "SIGINT"),
    ("benders --time-limit 5", "master, whole counts", 0.1, "SIGINT"),
]
PHASES = ("ruin and recreate in windows", "cutting planes", "master, counts in fractions")
PHASES = (*PHASES, "cuts around the plan", "plans that fit", "master, whole counts")
LATER = [
    *((method, "", delay, "SIGINT") for delay in (0.1, 0.8, 5.0) for method in ("milp", "colgen")),
    *((f"benders --time-limit {k}", each, 0.1, "SIGINT") for each in PHASES for k in (10, 40)),
]


@pytest.mark.parametrize(
    ("method", "phase", "delay", "ending"),
    [*WHEN, *(pytest.param(*each, marks=pytest.mark.nightly) for each in LATER)],
)
def test_a_signal_leaves_a_solve_with_its_interval(
    busy: Path, method: str, phase: str, delay: float, ending: str
) -> None:
    options = ("--method", *method.split())
    document = stopped(busy, delay, "solve", *options, phase=phase, ending=ending)
    instance = oasis.read(busy)
    schedules = {s["job_id"]: oasis.Schedule.from_dict(s) for s in document["schedules"]}
    assert oasis.verify(instance, schedules) == pytest.approx(document["objective"])
    if phase or delay > 1:
        online = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
        assert document["objective"] >= online.total_utility * (1 - 1e-9)
        assert document["history"][-1]["upper_bound"] == pytest.approx(document["upper_bound"])


@pytest.mark.parametrize(("delay", "policy"), [(0.04, "oasis"), (1.5, "oasis"), (0.4, "recourse")])
def test_ctrl_c_leaves_a_ratio_with_its_interval(busy: Path, delay: float, policy: str) -> None:
    document = stopped(busy, delay, "ratio", "--method", "milp", "--policy", policy)
    assert document["proven"] is False
    assert document["ratio"] is None
    if document["online_utility"] == 0:
        assert document["ratio_lower"] is document["ratio_upper"] is None
    elif document["alpha"] is None:  # the run had not ended: all that is known is OPT >= P
        assert document["ratio_lower"] == 1 <= document["ratio_upper"]
    else:
        assert 1 <= document["ratio_lower"] <= document["ratio_upper"]


SENDS_ITSELF = """
import os, signal, sys
from experiments.evaluation import comparison
import oasis.simulator.run as run

def ended(*arguments, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("SIGTERM did nothing")

run.Engine.run = ended
"""


@pytest.mark.parametrize("command", ["run", "compare"])
def test_sigterm_ends_other_commands_in_one_line(busy: Path, command: str) -> None:
    assert shell(command, busy, code=SENDS_ITSELF) == (130, "", "oasis: interrupted\n")


CUTS_THE_LP = """
import os, signal
from offline.column_generation.generation import ColumnGeneration

ColumnGeneration._solve = lambda _: os.kill(os.getpid(), signal.SIGINT)
"""


def test_prices_of_an_lp_that_did_not_end_do_not_pass_for_its_duals(
    busy: Path, tmp_path: Path
) -> None:
    """Ctrl-C writes none; a limit, which was asked for, writes them and says so."""
    learn = ("learn", busy, "-o", tmp_path / "p.json")
    told = "oasis: interrupted; nothing is written\n"
    assert shell(*learn, code=CUTS_THE_LP) == (130, "", told)
    assert not (tmp_path / "p.json").exists()
    code, _, err = shell(*learn, "--work-limit", "0.01")
    assert code == 3
    assert f"{busy}: work_limit before its LP was solved, so its prices are less exact\n" in err
    assert (tmp_path / "p.json").exists()


def test_a_second_ctrl_c_ends_the_program_at_once(busy: Path) -> None:
    impatient = "0.4" + 400 * ",0.001"  # those that come while no Python runs count as one
    code, out, err = interrupted(impatient, "solve", busy, "--method", "milp", "--json")
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_ctrl_c_ends_what_is_printed_for_people_too(busy: Path) -> None:
    code, out, _ = interrupted("0.0", "ratio", busy, "--per-job")
    assert code == 3
    assert "OASiS's run" in out
    assert "of 40 decisions" in out
    assert "not proven optimal" in out


# The first second: a module that takes long to load, in whose import the signal comes.
LOADS_LONG = """
import os, time
os.write(1, b"loading")
time.sleep(60)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["numpy", "typer", "rich"])
@pytest.mark.parametrize("how", ["module", "script"])
def test_a_signal_while_modules_are_loaded_is_one_line(
    tmp_path: Path, how: str, module: str, ending: signal.Signals
) -> None:
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / f"{module}.py").write_text(LOADS_LONG)
    script = tmp_path / "oasis"
    script.write_text(f"import sys\nsys.path.insert(0, {str(tmp_path / 'slow')!r})\n" + SCRIPT)
    words = [str(script)] if how == "script" else ["-m", "oasis"]
    path = f"{tmp_path / 'slow'}{os.pathsep}{ROOT}"
    with subprocess.Popen(
        [sys.executable, *words, "compare", "absent.json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"loading"
        process.send_signal(ending)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"oasis: interrupted\n")


SCRIPT = "from oasis.__main__ import main\nsys.exit(main())\n"


def test_another_program_keeps_its_own_ctrl_c() -> None:
    program = (
        "import signal, oasis\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    )
    assert python("-c", program) == (0, "", "")


# Signals itself when the policy named first begins.
ENDS_AT = """
import os, signal, sys
import oasis.simulator.run as run
from oasis.simulator.engine import Engine
awaited, begin = sys.argv.pop(1), Engine.run

def ended(self, *arguments, **options):
    policy = next((v for v in vars(self).values() if hasattr(v, "decide")), None)
    if awaited == getattr(policy, "name", None):
        os.kill(os.getpid(), signal.SIGINT)
    return begin(self, *arguments, **options)

Engine.run = ended
"""

PLAIN_TRACE = "id,submitted,duration,gpus\na,0,60,1\nb,10,60,2\n"


@pytest.mark.parametrize("command", ["compare", "replay", "elastic"])
def test_an_interrupted_comparison_keeps_the_policies_that_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text(PLAIN_TRACE)
    example = ROOT / "docs" / "examples" / "congested.json"
    elastic = ROOT / "docs" / "examples" / "elastic.json"
    words = {
        "compare": ("compare", example),
        "replay": ("replay", trace),
        "elastic": ("compare", elastic),
    }[command]
    how = "read as plain (--format)\ndurations read as seconds; median 60 s (--duration-unit)\n"
    read = how if command == "replay" else ""
    said = f"{read}interrupted: without drf, las, which had not ended\n"
    kept = tmp_path / "kept.json"
    many = ("--policies", "fifo,srtf,drf,las", "-o", kept)
    code, out, err = shell("drf", *words, *many, code=ENDS_AT, COLUMNS="100")
    assert (code, err) == (3, said)
    rows = [line.split()[0] for line in out.splitlines()[2:]]
    assert [row for row in rows if row in ("fifo", "srtf", "drf", "las")] == ["fifo", "srtf"]
    document = json.loads(kept.read_text())
    assert (list(document["policies"]), document["missing"]) == (["fifo", "srtf"], ["drf", "las"])
    nothing = shell("fifo", *words, "--policies", "fifo,drf", "--json", code=ENDS_AT, COLUMNS="100")
    assert nothing == (130, "", f"{read}oasis: interrupted\n")
    whole = exit_code(*words, "--policies", "fifo,drf", "--json")
    assert (whole, "missing" in json.loads(capsys.readouterr().out)) == (0, False)
