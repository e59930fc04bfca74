"""The ``oasis`` command: exit codes, one line for every error, one document for ``--json``."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.cli import console
from experiments.cli.main import main
from oasis.version import __version__

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "congested.json"
SWEEP = ROOT / "docs" / "examples" / "sweep.toml"
JOB = ROOT / "docs" / "examples" / "job.json"

SMALL: dict[str, Any] = {
    "format": "oasis-instance",
    "version": 1,
    "horizon": 4,
    "slot_seconds": 3600.0,
    "resources": ["gpu", "bandwidth_gbps"],
    "worker_servers": [{"id": "w", "count": 2, "capacity": {"gpu": 2, "bandwidth_gbps": 20}}],
    "ps_servers": [{"id": "p", "capacity": {"bandwidth_gbps": 20}}],
    "jobs": [
        {
            "id": name,
            "arrival": arrival,
            "epochs": 2,
            "chunks": 4,
            "minibatches": 1,
            "minibatch_time": 0.5,
            "gradient_mb": 100.0,
            "worker": {"gpu": 1, "bandwidth_gbps": 1.0},
            "ps": {"bandwidth_gbps": 5.0},
            "utility": {"kind": "sigmoid", "priority": 10.0, "decay": 0.5, "target": 2.0},
        }
        for name, arrival in (("a", 0), ("b", 1))
    ],
    "metadata": {"seed": 7},
}

Result = tuple[int, str, str]
Oasis = Callable[..., Result]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL), encoding="utf-8")
    return path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Oasis:
    """Call the command in this process and return (exit code, stdout, stderr)."""

    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as exit_info:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(exit_info.value.code, int)
        return exit_info.value.code, out, err

    return call


def shell(*arguments: object, code: str = "", **environment: str) -> Result:
    """Run the command, or `code` before it, in a process of its own."""
    start = f"{code}\nfrom experiments.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", start, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def assert_refused(result: Result, *mentions: str) -> None:
    """Exit code 2, nothing on standard output, one line on standard error that says what."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("oasis: ")
    for text in mentions:
        assert text in err


# --- what works -------------------------------------------------------------------------------


def test_version_is_that_of_the_package(run: Oasis) -> None:
    assert run("--version") == (0, f"oasis-scheduler {__version__}\n", "")


COMMANDS = (
    (),
    "generate",
    "run",
    "compare",
    "solve",
    "ratio",
    "quote",
    "sweep",
    "figure",
    "import",
    "import philly",
    "import openb",
)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_help_fits_80_columns_and_ends_with_0(command: str | tuple[()]) -> None:
    words = command.split() if command else []
    code, out, err = shell(*words, "--help", COLUMNS="80", NO_COLOR="1", TERM="dumb")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert " ".join(["Usage: oasis", *words]) in out


def test_without_a_command_the_help_is_printed_and_the_usage_is_bad() -> None:
    code, out, err = shell()
    assert code == 2
    assert "Usage: oasis" in out + err
    assert "Traceback" not in err


def test_generate_writes_what_the_library_draws(run: Oasis, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    sizes = ("--jobs", 3, "--worker-servers", 2, "--ps-servers", 1, "--horizon", 12)
    code, out, err = run("generate", "--preset", "testbed", *sizes, "--seed", 5, "-o", path)
    assert (code, out) == (0, "")
    assert str(path) in err
    drawn = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=1, horizon=12, seed=5)
    assert oasis.read(path) == drawn


def test_run_reports_every_decision(run: Oasis, small: Path) -> None:
    code, out, err = run("run", small)
    assert (code, err) == (0, "")
    assert "total utility" in out
    assert "admitted" in out


@pytest.mark.parametrize("policy", ["oasis", "fifo", "drf", "rrh", "dorm", "srtf", "las"])
def test_run_knows_every_policy(run: Oasis, small: Path, policy: str) -> None:
    code, out, err = run("run", small, "--policy", policy, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["policy"] == policy
    assert document["simulation"]["makespan"] >= 0


def test_an_unknown_policy_is_bad_usage(run: Oasis, small: Path) -> None:
    for words in (
        ("run", small, "--policy", "lifo"),
        ("compare", small, "--policies", "fifo,lifo"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert "expected one of oasis, fifo, drf, rrh, dorm, srtf, las, got 'lifo'" in err


def test_compare_puts_policies_side_by_side(run: Oasis, small: Path) -> None:
    code, out, err = run("compare", small, "--policies", "oasis,fifo,drf")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["oasis", "fifo", "drf"]
    code, out, err = run("compare", small, "--policies", "oasis,fifo", "--json")
    document = json.loads(out)
    assert list(document["policies"]) == ["oasis", "fifo"]
    alone = json.loads(run("run", small, "--json")[1])
    assert document["policies"]["oasis"]["total_utility"] == alone["total_utility"]


def test_solve_proves_a_small_instance(run: Oasis, small: Path) -> None:
    code, out, err = run("solve", small)
    assert (code, err) == (0, "")
    assert "optimal" in out


def test_ratio_proves_a_small_instance(run: Oasis, small: Path) -> None:
    code, out, err = run("ratio", small)
    assert (code, err) == (0, "")
    assert "(proven)" in out
    assert "2 alpha" in out


def test_ratio_lists_every_job_for_people_and_for_scripts(run: Oasis, small: Path) -> None:
    code, out, err = run("ratio", small, "--per-job")
    assert (code, err) == (0, "")
    assert "Jobs that both take" in out
    code, out, err = run("ratio", small, "--per-job", "--json")
    assert (code, err) == (0, "")
    assert [entry["job_id"] for entry in json.loads(out)["per_job"]["jobs"]] == ["a", "b"]


def test_quote_answers_for_a_job_of_the_same_form(run: Oasis, small: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps({**SMALL["jobs"][0], "id": "late", "epochs": 1}), encoding="utf-8")
    code, out, err = run("quote", small, job)
    assert (code, err) == (0, "")
    assert "job late would be admitted" in out


def test_quote_says_what_a_rejected_job_would_need(run: Oasis) -> None:
    code, out, _ = run("quote", EXAMPLE, JOB)
    assert code == 0
    assert "would be rejected" in out
    assert "needs to be worth" in out
    assert "multiplied by more than" in out


PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:00,3600,2,7200,vc1
2017-10-09 07:10:00,7200,4,28800,vc1
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 08:00:00,oops,2,7200,vc2
2017-10-09 09:00:00,5400,2,10800,vc2
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
pod-0,8000,16384,1,1000,,LS,Succeeded,0,10000,100
pod-1,8000,16384,1,500,,BE,Succeeded,3600,30000,3700
pod-2,8000,16384,1,1000,,BE,Pending,3700,30000,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,P100
node-1,64000,262144,2,P100
node-2,96000,786432,8,V100M16
"""


def test_import_philly_reports_the_rows_it_left_out(run: Oasis, tmp_path: Path) -> None:
    trace, path = tmp_path / "philly.csv", tmp_path / "philly.json"
    trace.write_text(PHILLY, encoding="utf-8")
    code, out, err = run("import", "philly", trace, "-o", path)
    assert (code, out) == (0, "")
    assert "bad duration" in err
    instance = oasis.read(path)
    assert [job.arrival for job in instance.jobs] == [0, 0, 4]
    assert run("ratio", path)[0] == 0


def test_import_openb_takes_pods_and_nodes(run: Oasis, tmp_path: Path) -> None:
    pods, nodes, path = (tmp_path / name for name in ("pods.csv", "nodes.csv", "openb.json"))
    pods.write_text(PODS, encoding="utf-8")
    nodes.write_text(NODES, encoding="utf-8")
    sizes = ("--worker-servers", 1, "--ps-servers", 1)
    code, out, _ = run("import", "openb", pods, nodes, "-o", path, *sizes)
    assert (code, out) == (0, "")
    instance = oasis.read(path)
    assert [job.id for job in instance.jobs] == ["pod-0", "pod-1"]
    assert instance.cluster.worker_ids == ("node-0",)
    assert run("ratio", path)[0] == 0


# --- JSON -------------------------------------------------------------------------------------

KEYS = {
    "run": "total_utility admitted rejected decisions alpha decision_seconds seed version",
    "solve": "status objective upper_bound gap objective_by bound_by history version",
    "ratio": "total_utility admitted rejected decisions status objective upper_bound gap ratio "
    "ratio_lower ratio_upper proven alpha bound_2alpha decision_seconds seed version "
    "objective_by bound_by history log_alpha_x payoff_gap corrected_bound corrected_ratio_bound",
}


def no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("command", KEYS)
def test_json_is_one_document_with_the_promised_keys(
    run: Oasis, small: Path, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "result.json"
    code, out, err = run(command, small, "--json", "-o", path)
    assert (code, err) == (0, "")
    document = json.loads(out, parse_constant=no_constant)
    assert set(KEYS[command].split()) <= set(document)
    assert document["version"] == __version__
    assert document.get("seed", 7) == 7
    if "decision_seconds" in document:
        assert set(document["decision_seconds"]) == {"median", "p99", "max"}
    assert json.loads(path.read_text(encoding="utf-8")) == document


def test_json_quote_of_a_rejected_job_names_the_bottleneck(run: Oasis) -> None:
    code, out, err = run("quote", EXAMPLE, JOB, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out, parse_constant=no_constant)
    assert document["admitted"] is False
    assert document["rejection"]["smallest_utility"] > 0
    assert document["rejection"]["bottleneck"]["group"] in {"worker", "ps"}


def test_limit_before_a_proof_prints_the_interval_and_ends_with_3(run: Oasis) -> None:
    code, out, _ = run("ratio", EXAMPLE, "--time-limit", 0)
    assert code == 3
    assert re.search(r"between \S+ and \S+ \(not proven: time_limit\)", out)
    code, out, _ = run("ratio", EXAMPLE, "--time-limit", 0, "--json")
    document = json.loads(out, parse_constant=no_constant)
    assert code == 3
    assert document["proven"] is False
    assert document["ratio"] is None
    assert document["ratio_lower"] <= document["ratio_upper"]
    code, out, _ = run("solve", EXAMPLE, "--time-limit", 0, "--json")
    assert code == 3
    assert json.loads(out)["status"] == "time_limit"


@pytest.mark.parametrize(
    ("command", "where"), [("solve", "parameters"), ("ratio", "offline_parameters")]
)
def test_infinite_time_limit_is_no_limit_and_null_in_json(
    run: Oasis, small: Path, tmp_path: Path, command: str, where: str
) -> None:
    path = tmp_path / "result.json"
    code, out, _ = run(command, small, "--time-limit", "inf", "--json", "-o", path)
    assert code == 0
    document = json.loads(out, parse_constant=no_constant)
    assert document["status"] == "optimal"
    assert document[where]["time_limit"] is None
    assert json.loads(path.read_text(encoding="utf-8")) == document


# --- bad usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        (["nonsense"], "nonsense"),
        (["ratio"], "FILE"),
        (["ratio", "absent.json"], "absent.json"),
        (["run", "."], "."),
        (["run", EXAMPLE, "--policy", "fifi"], "fifi"),
        (["run", EXAMPLE, "--granularity", "job"], "job"),
        (["run", EXAMPLE, "--scale", "0"], "> 0"),
        (["run", EXAMPLE, "--scale", "many"], "--scale"),
        (["run", EXAMPLE, "--min-utility-fraction", "1"], "min_utility_fraction"),
        (["run", EXAMPLE, "--nonsense"], "--nonsense"),
        (["solve", EXAMPLE, "--method", "guess"], "guess"),
        *(
            ([*command, "--time-limit", seconds], "expected seconds >= 0, or inf, got")
            for command in (["solve", EXAMPLE], ["ratio", EXAMPLE], ["figure", "fig5"])
            for seconds in ("-1", "nan", "-inf")
        ),
        (["generate"], "--output"),
        (["generate", "--preset", "none", "-o", "x.json"], "preset"),
        (["generate", "--jobs", "0", "-o", "x.json"], "jobs"),
        (["generate", "--mix", "0.5", "0.5", "0.5", "-o", "x.json"], "mix"),
        (
            ["generate", "-o", Path("no", "such", "directory", "x.json")],
            "no/such/directory: No such directory",
        ),
        (["import", "philly", "absent.csv", "-o", "x.json"], "absent.csv"),
        (["import", "philly", EXAMPLE, "-o", "x.json"], "timestamp"),
        (["quote", EXAMPLE, EXAMPLE], "unknown key"),
    ],
    ids=lambda value: " ".join(map(str, value))[-40:] if isinstance(value, list) else None,
)
def test_bad_usage_is_one_line_and_2(
    run: Oasis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[object],
    mention: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(run(*arguments), mention)
    assert list(tmp_path.iterdir()) == []


# --- malformed files --------------------------------------------------------------------------


def changed(*path: str | int, to: Any) -> str:
    """SMALL with the value at `path` replaced, as text; `to` may be a function of the old one."""
    data = copy.deepcopy(SMALL)
    *outer, last = path
    inner: Any = data
    for key in outer:
        inner = inner[key]
    inner[last] = to(inner[last]) if callable(to) else to
    return json.dumps(data)


def without(*path: str | int) -> str:
    return changed(*path[:-1], to=lambda old: {k: v for k, v in old.items() if k != path[-1]})


MALFORMED = {
    "empty": ("", "JSON"),
    "cut off": (json.dumps(SMALL)[:-9], "JSON"),
    "not an object": ("[]", "expected an object"),
    "deeply nested": ("[" * 100_000, "JSON"),
    "repeated key": ('{"format": 1, "format": 1}', "format"),
    "another format": (changed("format", to="swf"), "format"),
    "another version": (changed("version", to=2), "version"),
    "unknown key": (changed("jobs", 0, to=lambda job: {**job, "colour": 1}), "jobs[0].colour"),
    "missing key": (changed("jobs", 1, to=lambda job: {**job, "worker": None}), "jobs[1].worker"),
    "text for a number": (changed("horizon", to="4"), "horizon"),
    "true for a number": (changed("slot_seconds", to=True), "slot_seconds"),
    "fraction for a count": (changed("jobs", 0, "chunks", to=1.5), "jobs[0].chunks"),
    "negative": (changed("jobs", 0, "gradient_mb", to=-1), "jobs[0].gradient_mb"),
    "zero count": (changed("worker_servers", 0, "count", to=0), "worker_servers[0].count"),
    "NaN": (changed("jobs", 0, "minibatch_time", to=float("nan")), "jobs[0].minibatch_time"),
    "infinity": (
        changed("ps_servers", 0, "capacity", "bandwidth_gbps", to=float("inf")),
        "ps_servers[0].capacity.bandwidth_gbps",
    ),
    "huge integer": (changed("jobs", 0, "worker", "gpu", to=10**400), "jobs[0].worker.gpu"),
    "no length": (changed("slot_seconds", to=0), "slot_seconds"),
    "no server": (changed("ps_servers", to=[]), "ps_servers"),
    "repeated server": (changed("ps_servers", 0, "id", to="w#0"), "ps_servers[0].id"),
    "repeated job": (changed("jobs", 1, "id", to="a"), "jobs[1].id"),
    "repeated resource": (changed("resources", to=["gpu", "gpu"]), "resources[1]"),
    "unknown resource": (
        changed("jobs", 1, "ps", to={"tpu": 1, "bandwidth_gbps": 5}),
        "jobs[1].ps.tpu",
    ),
    "arrival too late": (changed("jobs", 1, "arrival", to=4), "jobs[1].arrival"),
    "no work": (
        changed("jobs", 0, to=lambda job: {**job, "minibatch_time": 0, "gradient_mb": 0}),
        "jobs[0].minibatch_time",
    ),
    "no bandwidth": (
        changed("jobs", 0, "worker", "bandwidth_gbps", to=0),
        "jobs[0].worker.bandwidth_gbps",
    ),
    "b above B": (
        changed("jobs", 0, "worker", "bandwidth_gbps", to=6),
        "jobs[0].worker.bandwidth_gbps",
    ),
    "unknown utility": (changed("jobs", 0, "utility", "kind", to="step"), "jobs[0].utility.kind"),
    "rising utility": (
        changed(
            *("jobs", 0, "utility"),
            to={"kind": "piecewise", "delays": [0, 1], "values": [1, 2]},
        ),
        "jobs[0].utility.values[1]",
    ),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_instance_is_one_line_with_file_and_field(
    run: Oasis, tmp_path: Path, fault: str
) -> None:
    text, field = MALFORMED[fault]
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    assert_refused(run("run", path), str(path), field)


def test_binary_file_is_refused_in_one_line(run: Oasis, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe\x00\x01")
    assert_refused(run("ratio", path), str(path), "UTF-8")


def test_malformed_instance_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed("horizon", to=0), encoding="utf-8")
    assert_refused(shell("ratio", path, "--json"), "horizon")


def test_malformed_job_names_file_and_field(run: Oasis, small: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**SMALL["jobs"][0], "epochs": 0}), encoding="utf-8")
    assert_refused(run("quote", small, path), "job.json: epochs")


# --- the surroundings -------------------------------------------------------------------------

BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("typer", "cli", ("run", EXAMPLE)),
        ("rich", "cli", ("run", EXAMPLE)),
        ("pulp", "solve", ("ratio", EXAMPLE)),
        ("highspy", "solve", ("ratio", EXAMPLE)),
        ("highspy", "solve", ("solve", EXAMPLE)),
        ("matplotlib", "plot", ("run", EXAMPLE, "--plot", "run.png")),
        ("highspy", "solve", ("run", EXAMPLE, "--policy", "dorm")),
        ("pulp", "solve", ("compare", EXAMPLE)),
        ("pydantic", "sweep", ("sweep", SWEEP)),
        ("pandas", "sweep", ("sweep", SWEEP)),
        ("pyarrow", "sweep", ("sweep", SWEEP)),
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


@pytest.mark.parametrize("command", ["run", "quote"])
def test_commands_that_solve_nothing_need_no_solver(command: str) -> None:
    files = (EXAMPLE,) if command == "run" else (EXAMPLE, JOB)
    code, out, err = shell(command, *files, code=BLOCK.format(name="highspy"))
    assert (code, err) == (0, "")
    assert out


def test_reader_that_leaves_early_is_no_error(small: Path) -> None:
    command = [sys.executable, "-m", "experiments.cli", "run", str(small), "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_ctrl_c_is_one_line_and_a_code_of_its_own(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.cli.commands.compare.compare", interrupted)
    with pytest.raises(SystemExit) as exit_info:
        main(["compare", str(small), "--policies", "oasis"])
    assert exit_info.value.code == 130
    assert capfd.readouterr() == ("", "oasis: interrupted\n")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_numbers_of_a_table_are_never_cut(
    width: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    number, heading, words = "39.22 (5.98e-07 to 257419030)", "geometric mean", "some few words"
    console.print_rows((("policy", False), (heading, True)), [(words, number)], "a table")
    out = capfd.readouterr().out
    assert number in out
    assert heading in out
    assert all(word in out for word in words.split())
    assert "…" not in out
