"""Small traces in the formats that people have: the jobs of one list, written in each of them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from baselines import EASY, FIFO
from oasis.model.errors import InstanceError
from oasis.simulator import replay, rigid_workload
from oasis.traces import read_plain
from oasis.traces.plain import FORMATS as READ
from oasis.traces.plain import PlainTrace, format_of, plain_jobs
from oasis.traces.plain_job import COMPLETED, FAILED, KILLED, PlainJob
from oasis.traces.table import Faults, MalformedError, cell, entries_of, source_of
from tests.oracle import fifo_easy

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
BEGIN = 1_600_000_000  # of the dated traces


@dataclass(frozen=True)
class Made:
    """A job, from which the text of a trace is written and what is to be read of it is known."""

    name: str
    submitted: int
    started: int
    duration: int
    gpus: int
    owner: str
    state: str

    @property
    def ended(self) -> int:
        return self.started + self.duration


def made_jobs(count: int = 40) -> list[Made]:
    draw = random.Random(7)
    jobs, now = [], 0
    for k in range(count):
        duration, gpus = draw.randint(5, 400), draw.choice([1, 1, 1, 2, 4, 8])
        state, owner = draw.choice([COMPLETED, FAILED, KILLED]), draw.choice(["ann", "bob"])
        jobs.append(Made(f"j{k}", now, now + draw.randint(0, 90), duration, gpus, owner, state))
        now += draw.randint(0, 60)
    return jobs


JOBS = made_jobs()


def at(seconds: int, zone: str = "") -> str:
    return datetime.fromtimestamp(BEGIN + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") + zone


SLURM_WORDS = {COMPLETED: "COMPLETED", FAILED: "NODE_FAIL", KILLED: "CANCELLED"}
HELIOS_HEADER = (
    "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
    "duration,queue"
)
ACME_HEADER = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time"
)
SUPERCLOUD_HEADER = (
    "id_job,id_array_job,id_user,nodes_alloc,nodelist,cpus_req,partition,state,timelimit,"
    "time_submit,time_eligible,time_start,time_end,tres_alloc,tres_req,job_type"
)


def table(header: str, rows: list[str]) -> str:
    return "\n".join([header, *rows]) + "\n"


def helios(jobs: list[Made]) -> str:
    rows = [
        f"{j.name},{j.owner},vc1,x,{j.gpus},4,1,{SLURM_WORDS[j.state]},{at(j.submitted)},"
        f"{at(j.started)},{at(j.ended)},{j.duration},{j.started - j.submitted}"
        for j in jobs
    ]
    return table(HELIOS_HEADER, [*rows, "c,u,vc1,x,2,1,1,CANCELLED," + at(9) + ",None,None,0,0"])


def acme(jobs: list[Made]) -> str:
    """As Kalos: `duration` is the time from submission to end, which is not how long it ran."""
    rows = [
        f"{j.name},{j.owner},1,{float(j.gpus)},8,Other,{SLURM_WORDS[j.state]},"
        f"{at(j.submitted, '+00:00')},{at(j.started, '+00:00')},{at(j.ended, '+00:00')},"
        f"{j.ended - j.submitted},0,1.0"
        for j in jobs
    ]
    return table(ACME_HEADER, rows)


def supercloud(jobs: list[Made]) -> str:
    number = {COMPLETED: 3, FAILED: 7, KILLED: 4}
    rows = [
        f"{j.name},0,{j.owner},1,['n1'],40,gaia,{number[j.state]},1440,{BEGIN + j.submitted},"
        f"{BEGIN + j.submitted},{BEGIN + j.started},{BEGIN + j.ended},"
        f'"1=40,2=9000,4=1,5=40,100{1 + j.gpus % 2}={j.gpus}","1=40",OTHER'
        for j in jobs
    ]
    never = f"c,0,ann,0,[],1,gaia,4,9,{BEGIN},{BEGIN},0,{BEGIN + 5},,1=40,OTHER"
    return table(
        SUPERCLOUD_HEADER, [*rows, never, never.replace("c,0", "r,0").replace(",4,9", ",1,9")]
    )


def tiresias(jobs: list[Made]) -> str:
    rows = [f"{j.name},{j.gpus},{j.submitted},99,vgg19,{j.duration},30" for j in jobs]
    return table("job_id,num_gpu,submit_time,iterations,model_name,duration,interval", rows)


def philly_log(jobs: list[Made]) -> str:
    """Every job with an even number had a first attempt half as long, on other servers."""
    word = {COMPLETED: "Pass", FAILED: "Failed", KILLED: "Killed"}
    entries: list[dict[str, Any]] = []
    for j in jobs:
        servers = [{"ip": f"m{k}", "gpus": ["gpu0"]} for k in range(j.gpus)]
        spans = [(j.started, j.ended)]
        if len(entries) % 2 == 0 and j.duration > 4:
            half = j.started + j.duration // 2
            spans = [(j.started, half), (half, j.ended)]
        attempts = [
            {"start_time": at(begin), "end_time": at(end), "detail": servers}
            for begin, end in spans
        ]
        # Of an attempt of which nothing was recorded there is nothing to read.
        attempts.append({"start_time": None, "end_time": None, "detail": []})
        entries.append(
            {
                "status": word[j.state],
                "vc": "vc1",
                "jobid": j.name,
                "attempts": attempts,
                "submitted_time": at(j.submitted),
                "user": j.owner,
            }
        )
    still = dict(entries[0], jobid="r", attempts=[{**attempts[0], "end_time": None}])
    return json.dumps([*entries, dict(entries[0], jobid="c", attempts=[]), still])


def batsim(jobs: list[Made]) -> str:
    profiles: dict[str, Any] = {f"p{j.name}": {"type": "delay", "delay": j.duration} for j in jobs}
    profiles["long"] = {"type": "DelayProfile", "delay": 10**6}
    profiles["one"] = {"type": "delay", "delay": 1}
    profiles["many"] = {"type": "composed", "repeat": jobs[1].duration, "seq": ["one"]}
    profiles["flops"] = {"type": "parallel_homogeneous", "cpu": 1e6, "com": 0}
    rows = [
        {"id": j.name, "subtime": j.submitted, "res": j.gpus, "profile": f"p{j.name}"} for j in jobs
    ]
    rows[0] |= {"profile": "long", "walltime": jobs[0].duration}
    rows[1] |= {"profile": "many", "walltime": -1}
    rows.append({"id": "x", "subtime": 0, "res": 1, "profile": "flops"})
    return json.dumps({"nb_res": 16, "jobs": rows, "profiles": profiles})


def gavel(jobs: list[Made]) -> str:
    """A step takes half a second with one worker, and a quarter with more."""
    rows = []
    for j in jobs:
        steps = j.duration * (2 if j.gpus == 1 else 4)
        cells = ["LM (batch size 5)", "python main.py", "lm", "--steps", 1, steps, j.gpus]
        rows.append("\t".join(map(str, [*cells, 1, "-1.000000", float(j.submitted)])))
    return "\n".join(rows) + "\n"


def throughputs() -> str:
    rates = {f"('LM (batch size 5)', {n})": {"null": 2.0 if n == 1 else 4.0} for n in (1, 2, 4, 8)}
    return json.dumps({"v100": rates, "k80": {}})


def shockwave(jobs: list[Made]) -> str:
    rows = []
    for j in jobs:
        cells = ["LM", "python main.py", "lm", "--steps", 1, 5, j.gpus, "static", 1, -1]
        rows.append("\t".join(map(str, [*cells, float(j.duration), float(j.submitted)])))
    return "\n".join(rows) + "\n"


PAI_WORDS = {COMPLETED: "Terminated", FAILED: "Failed", KILLED: "Failed"}


def pai(jobs: list[Made]) -> str:
    rows = [
        f"{j.name},i{j.name},{j.owner},{PAI_WORDS[j.state]},{float(j.submitted)},{j.ended}.0"
        for j in jobs
    ]
    return "\n".join([*rows, "w,iw,ann,Running,5.0,", "n,in,ann,Failed,5.0,6.0"]) + "\n"


def pai_tasks(jobs: list[Made]) -> str:
    """Half of the GPUs are asked for in halves; another task of the same job has none."""
    rows = []
    for j in jobs:
        middle = j.started + j.duration // 2
        rows.append(f"{j.name},ps,1.0,Terminated,{j.started}.0,{middle}.0,600.0,29.3,,MISC")
        instances, percent = (j.gpus, 100.0) if j.gpus % 2 else (2 * j.gpus, 50.0)
        end = f"{j.started + 1}.0,{j.ended}.0"
        rows.append(f"{j.name},worker,{instances}.0,Terminated,{end},600.0,29.3,{percent},T4")
    return "\n".join(rows) + "\n"


def sacct(jobs: list[Made]) -> str:
    """Numbers in all the ways that versions of Slurm write them."""

    def number(value: int, k: int) -> Any:
        return value if k % 2 else {"set": True, "infinite": False, "number": value}

    entries = []
    for k, j in enumerate(jobs):
        word = SLURM_WORDS[j.state]
        entries.append(
            {
                "job_id": k + 1,
                "user": j.owner,
                "account": "lab",
                "state": {"current": [word] if k % 3 else word, "reason": "None"},
                "time": {
                    "submission": number(BEGIN + j.submitted, k),
                    "start": number(BEGIN + j.started, k),
                    "end": number(BEGIN + j.ended, k),
                    "elapsed": number(j.duration, k),
                },
                "tres": {
                    "allocated": [
                        {"type": "cpu", "name": "", "id": 1, "count": 8},
                        {"type": "gres", "name": "gpu", "id": 1001, "count": j.gpus},
                    ]
                },
            }
        )
    return json.dumps({"meta": {"Slurm": {"version": {"major": 23}}}, "jobs": entries})


def whole(job: Made) -> PlainJob:
    return PlainJob(
        *(job.name, float(job.submitted), float(job.duration), job.gpus, job.owner),
        *(float(job.started), float(job.ended), job.state),
    )


def bare(job: Made) -> PlainJob:
    return PlainJob(job.name, float(job.submitted), float(job.duration), job.gpus)


def by_line(job: Made) -> PlainJob:
    return replace(bare(job), id=f"job-{int(job.name[1:]) + 1}")


def by_number(job: Made) -> PlainJob:
    return replace(whole(job), id=f"{int(job.name[1:]) + 1}")


def without_killed(job: Made) -> PlainJob:
    return replace(whole(job), state={KILLED: FAILED}.get(job.state, job.state))


NO_TASK = "no task of this job in the table of tasks"
Writer = Callable[[list[Made]], str]
FORMATS: dict[str, tuple[str, Writer, Callable[[Made], PlainJob], list[str]]] = {
    "helios": ("helios", helios, whole, ["never ran"]),
    "acme": ("acme", acme, whole, []),
    "supercloud": ("supercloud", supercloud, whole, ["has not ended", "never ran"]),
    "tiresias": ("tiresias", tiresias, bare, []),
    "philly log": ("philly", philly_log, whole, ["has not ended", "never ran"]),
    "batsim": ("batsim", batsim, bare, ["a profile of type parallel_homogeneous says no duration"]),
    "gavel": ("gavel", gavel, by_line, []),
    "shockwave": ("gavel", shockwave, by_line, []),
    "pai": (
        "pai",
        pai,
        without_killed,
        ["has not ended", "no task of this job in the table of tasks"],
    ),
    "sacct": ("slurm", sacct, by_number, []),
}


def read(directory: Path, kind: str, text: str | None = None, **options: Any) -> PlainTrace:
    (directory / "pai_task_table.csv").write_text(pai_tasks(JOBS))
    (directory / "throughputs.json").write_text(throughputs())
    path = directory / "jobs"
    path.write_text(FORMATS[kind][1](JOBS) if text is None else text)
    if kind == "gavel":
        options = {"throughputs": str(directory / "throughputs.json"), **options}
    return read_plain(path, format=options.pop("format", None), options=options)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_trace_is_recognised_and_its_jobs_are_those_that_were_written(
    kind: str, tmp_path: Path
) -> None:
    name, _, expected, left_out = FORMATS[kind]
    trace = read(tmp_path, kind)
    assert trace.format == name
    assert list(trace.jobs) == [expected(job) for job in JOBS]
    assert sorted(trace.malformed) == left_out
    assert all(found["count"] == 1 for found in trace.malformed.values())


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("easy", [False, True])
def test_fifo_and_easy_start_each_job_when_another_program_does(
    kind: str, easy: bool, tmp_path: Path
) -> None:
    trace = read(tmp_path, kind)
    rows = [(job.submitted, job.duration, job.gpus) for job in JOBS]
    outcome = replay(rigid_workload(trace.jobs, 1, 8), EASY() if easy else FIFO())
    assert [job.start for job in outcome.jobs] == fifo_easy.starts(rows, 8, easy)


@pytest.mark.parametrize("name", ["philly_sia.csv", "openb_pod_list_default.csv"])
@pytest.mark.parametrize("easy", [False, True])
def test_real_jobs_start_when_another_program_says(name: str, easy: bool) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not at hand: set OASIS_DATA to the directory that has it")
    with (DATA / name).open("rb") as stream:
        source = source_of(name, b"".join(islice(stream, 2000)))
    kind = READ[format_of(source)]
    trace = plain_jobs(source, kind, kind.options(), max_gpus=8, first=400, jobs=250)
    rows = [(job.submitted, job.duration, job.gpus) for job in trace.jobs]
    outcome = replay(rigid_workload(trace.jobs, 1, 8), EASY() if easy else FIFO())
    assert [job.start for job in outcome.jobs] == fifo_easy.starts(rows, 8, easy)


def test_a_run_of_several_attempts_ends_when_the_last_one_does(tmp_path: Path) -> None:
    log = json.loads(philly_log(JOBS[:1]))[:1]
    pause = [(10, 20), (50, 80)]
    log[0]["attempts"] = [
        {"start_time": at(a), "end_time": at(b), "detail": [{"ip": "m", "gpus": ["gpu0"] * n}]}
        for (a, b), n in zip(pause, (1, 2), strict=True)
    ]
    (job,) = read(tmp_path, "philly log", json.dumps(log)).jobs
    # 10 s with one GPU and 30 s with two are 35 s with two.
    assert (job.gpus, job.duration, job.started, job.ended) == (2, 35.0, 10.0, 80.0)
    (last,) = read(tmp_path, "philly log", json.dumps(log), runs="last").jobs
    assert (last.gpus, last.duration, last.started, last.ended) == (2, 30.0, 50.0, 80.0)


def test_instances_say_when_a_job_of_pai_began_and_ended(tmp_path: Path) -> None:
    rows = [
        f"{j.name},worker,x{k},w{k},i{j.name},Terminated,{j.started + 5 * k}.0,{j.ended + k}.0,m"
        for j in JOBS
        for k in (1, 2)
    ]
    (tmp_path / "instances.csv").write_text("\n".join(rows) + "\n")
    trace = read(tmp_path, "pai", instances=str(tmp_path / "instances.csv"))
    assert [(job.started, job.ended) for job in trace.jobs] == [
        (job.started + 5, job.ended + 2) for job in JOBS
    ]
    assert trace.notes[-1] == "instances.csv is joined by job_name: 80 rows"


def test_a_part_of_a_gpu_is_counted_with_a_whole_one(tmp_path: Path) -> None:
    tasks = "j0,worker,3.0,Terminated,5.0,9.0,600.0,29.3,50.0,T4\n"
    path = tmp_path / "tasks.csv"
    path.write_text(tasks)
    trace = read(tmp_path, "pai", "j0,i0,ann,Terminated,1.0,9.0\n", tasks=str(path))
    assert [(job.gpus, job.duration) for job in trace.jobs] == [(2, 4.0)]
    assert trace.shares == 1


def _written(directory: Path, text: str) -> tuple[Path]:
    (directory / "pai_task_table.csv").write_text(pai_tasks(JOBS))
    path = directory / "jobs"
    path.write_text(text)
    return (path,)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("gavel", gavel(JOBS[:1]).replace("LM (", "XX ("),
         "row 1: no throughput on v100: XX (batch size 5), 1 workers; none of"),
        ("pai", "j0,i,ann,Failed,x,9.0\n", "row 1: bad start_time: not a time: 'x', expected"),
    ],
)  # fmt: skip
def test_a_fault_of_what_was_joined_is_told_by_its_row(
    kind: str, text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InstanceError) as caught:
        read(tmp_path, kind, text, format=kind)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("gavel", {"throughputs": ""}, "throughputs: expected Gavel's file of throughputs"),
        ("gavel", {"worker_type": "h100"}, "worker_type: expected one of v100, k80, got 'h100'"),
    ],
)
def test_an_option_that_is_needed_is_named(
    kind: str, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "jobs").write_text(gavel(JOBS))
    (tmp_path / "throughputs.json").write_text(throughputs())
    given = {"throughputs": str(tmp_path / "throughputs.json"), **options}
    with pytest.raises(InstanceError) as caught:
        read_plain(tmp_path / "jobs", options=given)
    assert str(caught.value).startswith(message)


def test_an_entry_of_a_document_that_is_no_cell_is_named() -> None:
    assert [cell({"a": 1.5}, "a"), cell({"a": None}, "a"), cell({}, "a")] == ["1.5", "", ""]
    for value in (True, [1], {}):
        with pytest.raises(MalformedError, match=r"^bad a$"):
            cell({"a": value}, "a")
    faults = Faults("entry")
    assert entries_of([{"id": 1}, 7], "jobs", "id", faults) == {1: {"id": "1"}}
    assert faults.malformed == {"not an object": {"count": 1, "first_entry": 2}}
    with pytest.raises(InstanceError, match=r"^jobs: expected a list of .* one job, got None"):
        entries_of(None, "jobs", "id", faults)
    with pytest.raises(InstanceError, match=r"^jobs: expected a list of .* one job, got an empty"):
        entries_of([], "jobs", "id", faults)


def test_the_table_of_tasks_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(pai(JOBS))
    with pytest.raises(InstanceError, match=r"^tasks: .* there is no pai_task_table.csv beside"):
        read_plain(tmp_path / "jobs")
