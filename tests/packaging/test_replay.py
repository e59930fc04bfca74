"""``oasis replay``: plain traces at the command line."""

import json
import os
import shlex
from functools import partial
from pathlib import Path

import pytest

from experiments.report.sections import commands_of
from oasis import InstanceError
from oasis.traces import read_plain

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"

SIMPLE = "id,submitted,duration,gpus\na,100,10,3\nb,101,5,2\nc,102,1,1\n"
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:00:02,1.0,1,1.0,vc1
2017-10-09 07:00:00,10.0,3,30.0,vc1

2017-10-09 07:00:01,5.0,2,10.0,vc1
2017-10-09 07:00:01,5.0,x,10.0,vc1
2017-10-09 07:00:00,5.0,16,80.0,vc2
"""


@pytest.fixture
def run(run):
    return partial(run, "replay")


@pytest.fixture
def trace(tmp_path):
    def write(text):
        path = tmp_path / "trace.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def rows(found):
    return [(job.submitted, job.duration, job.gpus) for job in found]


def test_both_formats_give_the_same_jobs_in_order_of_submission(trace):
    expected = [(0.0, 10.0, 3), (1.0, 5.0, 2), (2.0, 1.0, 1)]
    simple = read_plain(trace(SIMPLE))
    assert (rows(simple.jobs), simple.format, simple.malformed) == (expected, "plain", {})
    philly = read_plain(trace(PHILLY), virtual_cluster="vc1")
    assert (rows(philly.jobs), philly.format) == (expected, "philly")
    assert philly.malformed == {
        "blank row": {"count": 1, "first_row": 4},
        "bad num_gpus": {"count": 1, "first_row": 6},
    }
    assert [job.id for job in philly.jobs] == ["philly-3", "philly-5", "philly-2"]
    assert read_plain(trace(PHILLY), virtual_cluster="vc1", format="philly").jobs == philly.jobs


def test_a_window_of_the_jobs_can_be_taken(trace):
    path = trace(SIMPLE)
    assert rows(read_plain(path, max_gpus=2).jobs) == [(0.0, 5.0, 2), (1.0, 1.0, 1)]
    assert [job.id for job in read_plain(path, first=1, jobs=1).jobs] == ["b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SIMPLE.replace("gpus", "cards"), "column gpus: expected this column once in the"),
        (SIMPLE.partition("\n")[0], "jobs: expected at least one job"),
        ("id,submitted,duration,gpus\na,1,2,x\n", "row 2: bad gpus; none of the 1 rows of"),
        ("", "expected a trace (plain, philly, slurm, swf, openb, helios,"),
    ],
)
def test_a_bad_file_is_one_line_that_names_row_and_column(run, trace, text, message):
    path = trace(text)
    code, out, err = run(path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"oasis: {path}: {message}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SIMPLE.replace("10,3", "10,x"), "bad gpus"),
        (SIMPLE.replace("10,3", "0,3"), "never ran"),
        (SIMPLE.replace("10,3", "-1,3"), "bad duration"),
        (SIMPLE.replace("100", "inf"), "bad submitted: not a time"),
        (SIMPLE.replace("a,100", "100"), "wrong number of columns"),
    ],
)
def test_a_bad_row_is_left_out_and_said(run, trace, text, fault):
    code, out, err = run(trace(text))
    assert code == 0
    assert out.startswith("2 jobs on 64 GPUs (8 x 8)")
    read, left, unit, kept = err.splitlines()
    assert read == "read as plain (--format)"
    assert unit.startswith("durations read as seconds; median ")
    what = "row" if fault == "never ran" else "malformed row"
    assert left.startswith(f"left out: jobs: 1 {what} ({fault}")
    assert left.endswith("), first at line 2")
    assert kept == f"kept 2 of 3 jobs: 1 {fault.partition(':')[0]}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policies", "fifo,lifo"), "--policies: expected one of fifo, drf, "),
        (("--policies", "oasis"), "--policies: expected one of fifo, drf, "),
        (("--placement", "heap"), "--placement: 'heap' is not one of 'pooled', 'whole'"),
        (
            ("--virtual-cluster", "vc1"),
            "--virtual-cluster: expected a file with a column of it, got 'vc1'",
        ),
        (("--queue", "1"), "--queue: is an option of swf, the file is read as plain"),
        (
            ("--format", "csv"),
            "--format: expected one of plain, philly, slurm, swf, openb,",
        ),
        (("--servers", "0"), "--servers"),
        (
            ("--servers", "2", "--gpus-per-server", "2", "--placement", "whole"),
            "jobs[0].gpus: expected 1..2, got 3 (job 'a'); --max-gpus 2 leaves such jobs out",
        ),
        (("--skip", "3"), "expected at least one job"),
    ],
)
def test_bad_usage_is_one_line(run, trace, arguments, message):
    code, out, err = run(trace(SIMPLE), *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SIMPLE.replace("101", "1e300"),
            "bad submitted: above 2^53, expected seconds since the trace began), first at line 3",
        ),
        (SIMPLE.replace("10,3", "1e17,3"), "bad duration: above 2^53 seconds), first at line 2"),
    ],
)
def test_times_without_end_are_malformed_rows_that_are_named(run, trace, text, message):
    code, out, err = run(trace(text), "--any-year")
    assert code == 0
    assert out.startswith("2 jobs")
    assert message in err


def test_a_file_of_times_without_end_is_refused(run, trace):
    text = SIMPLE.replace("102", "-1e308").replace("100", "1e308")
    code, out, err = run(trace(text), "--any-year")
    assert (code, out) == (2, "")
    assert "2 of the 3 rows" in err


def test_a_missing_file_is_named(run, tmp_path):
    assert run(tmp_path / "absent.csv")[2].startswith(f"oasis: {tmp_path / 'absent.csv'}: ")


def test_every_policy_replays_and_the_figures_add_up(run, trace):
    names = "fifo,drf,rrh,dorm,srtf,las"
    arguments = ("--servers", 1, "--gpus-per-server", 4, "--policies", names, "--json")
    code, out, err = run(trace(SIMPLE), *arguments)
    assert (code, err) == (
        0,
        "read as plain (--format)\ndurations read as seconds; median 5 s (--duration-unit)\n",
    )
    document = json.loads(out)
    assert list(document["policies"]) == names.split(",")
    assert (document["jobs"], document["format"]) == (3, "plain")
    fifo = document["policies"]["fifo"]  # b waits for a, and c behind b
    assert fifo["mean_completion"] == pytest.approx((10 + 14 + 9) / 3)
    assert fifo["mean_waiting"] == pytest.approx((0 + 9 + 8) / 3)
    assert fifo["makespan"] == 15.0
    assert fifo["gpu_utilisation"] == pytest.approx((30 + 10 + 1) / 60)
    assert document["policies"]["dorm"]["report"]["milps"] > 0
    assert all(found["finished"] == 3 for found in document["policies"].values())


STILL_RUNNING = """\
job,submitted,started,ended,gpus,state
a,2026-01-05 08:00,2026-01-05 08:00,2026-01-05 09:00,4,COMPLETED
h,2026-01-05 08:05,2026-01-05 08:05,,4,RUNNING
b,2026-01-05 08:10,2026-01-05 08:10,2026-01-05 09:10,4,COMPLETED
c,2026-01-05 08:20,2026-01-05 09:10,2026-01-05 10:10,4,COMPLETED
"""


@pytest.mark.parametrize(("gpus", "span"), [(8, 180), (16, 80), (4, 250)])
def test_gpus_of_jobs_that_still_run_are_neither_idle_nor_in_use(run, trace, gpus, span):
    """In minutes: h holds four from 8:05 on, or when a ends, to 10:10 or the end of the run."""
    options = ("--machines", f"1x{gpus}", "--policies", "fifo", "--json")
    code, out, err = run(trace(STILL_RUNNING), *options)
    assert code == 0
    (fifo,) = json.loads(out)["policies"].values()
    assert fifo["makespan"] == 60 * span
    held = 70 if gpus == 4 else min(span, 130) - 5
    assert fifo["gpu_utilisation"] == pytest.approx(3 * 4 * 60 / (gpus * span - 4 * held))
    assert "warning" not in err


def test_more_gpus_held_than_there_are_get_one_line(run, trace):
    _, out, err = run(trace(STILL_RUNNING.replace(",,4,", ",,9,")), "--machines", "1x8", "--json")
    what = "warning: jobs that had begun and not ended hold 9 GPUs, but there are 8: once all have"
    what += " begun, no other job starts before the trace ends"
    assert what in json.loads(out)["notes"]
    assert err.count(what) == 1


def test_the_table_says_what_was_replayed_and_what_was_left_out(run, trace):
    path = trace(PHILLY)
    code, out, err = run(path, "--virtual-cluster", "vc1", "--gpus-per-server", 4, "--servers", 2)
    assert code == 0
    assert out.startswith("3 jobs on 8 GPUs (2 x 4), pooled\n")
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["fifo", "srtf", "las"]
    assert all(len(line) <= 80 for line in out.splitlines())
    assert err == (
        "read as philly (--format)\n"
        "left out: jobs: 1 row (blank row), first at line 4\n"
        "left out: jobs: 1 malformed row (bad num_gpus), first at line 6\n"
        "durations read as seconds; median 5 s (--duration-unit)\n"
        "kept 3 of 5 jobs: 1 bad num_gpus, 1 by virtual_cluster (vc1)\n"
    )


def test_the_result_is_also_written(run, trace, tmp_path):
    out = run(trace(SIMPLE), "--json", "-o", tmp_path / "result.json")[1]
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(out)


def test_philly_alone_wants_the_columns_of_philly(trace):
    with pytest.raises(
        InstanceError, match="expected a CSV file in the format of the Philly trace"
    ):
        read_plain(trace(SIMPLE), format="philly")


@pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")
def test_fifo_on_a_virtual_cluster_has_the_documented_mean(run):
    """Whole jobs; that of pooled GPUs is compared without the command line (claims_traces)."""
    options = ("--virtual-cluster", "0e4a51", "--policies", "fifo", "--placement", "whole")
    code, out, err = run(TRACE, *options, "--json")
    assert code == 0
    kept = "kept 1435 of 82247 jobs: 80812 by virtual_cluster (0e4a51)"
    unit = "durations read as seconds; median 1144 s (--duration-unit)"
    assert (
        err == f"read as philly (--format)\n{unit}\n{kept}\n"
    )  # a blank line at the end is no row
    assert f"{json.loads(out)['policies']['fifo']['mean_completion']:.4f}" == "670292.7672"


MEASURED = ("policy_seconds", "simulator_seconds", "jobs_per_second")
SLURM = """\
JobID;User;Submit;ElapsedRaw;State;AllocTRES
1;ann;01.03.2024 08:00;600;COMPLETED;gres/gpu=2
1;ann;01.03.2024 08:30;600;COMPLETED;gres/gpu=2
2;bob;01.03.2024 08:01;300;COMPLETED;gres/gpu=1
3;ann;01.03.2024 08:02;300;COMPLETED;gres/gpu=9
4;ann;01.03.2024 08:03;5;COMPLETED;gres/gpu=1
5;ann;01.03.2024 08:04;7;COMPLETED;gres/gpu=3
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (PHILLY, "--virtual-cluster vc1 --skip 1 --max-jobs 1 --servers 1 --gpus-per-server 3"),
        (PHILLY, "--max-gpus 8 --any-year --placement whole --policies easy,las --line fit"),
        (
            SLURM,
            "--runs last --user ann --time-format '%d.%m.%Y %H:%M' --time-zone Europe/Berlin "
            "--duration-unit min --delimiter ';' --max-gpus 4 --skip 1 --max-jobs 2",
        ),
        (SLURM, "--format slurm --time-format '%d.%m.%Y %H:%M' --allow-malformed --servers 3"),
    ],
)
def test_the_command_of_a_report_repeats_every_option(run, trace, monkeypatch, text, options):
    monkeypatch.chdir(trace(text).parent)

    def document(words):
        code, out, _ = run(*words, "--json")
        assert code == 0
        found = json.loads(out)
        for row in found["policies"].values():
            assert row.keys() >= set(MEASURED)
            for name in MEASURED:
                del row[name]
        return found

    first = document(["trace.csv", *shlex.split(options)])
    (line,) = commands_of("result.json", first)
    assert document(shlex.split(line)[2:]) == first
