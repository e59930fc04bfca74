"""Slurm's accounting: which column counts, several rows of one job, and the forms of sacct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oasis import InstanceError
from oasis.traces.job_table import chosen_rows
from oasis.traces.plain_job import PlainJob
from oasis.traces.runs import JobRun, add_jobs
from oasis.traces.slurm import SLURM, SlurmOptions, json_rows, layout_of
from oasis.traces.table import TraceSource, TraceTable, malformed_sentences

AT = "2024-03-01T0{}:00:00".format


def table_of(rows: str, **options: Any) -> TraceTable[Any]:
    source = TraceSource("jobs.txt", tuple(rows.strip("\n").splitlines()))
    return SLURM.table(source, SlurmOptions(**options))


def jobs_of(rows: str, **options: Any) -> list[PlainJob]:
    return [row.job for row in table_of(rows, **options).rows]


def facts(rows: str, **options: Any) -> dict[str, tuple[int, float]]:
    """GPUs and hours by job."""
    return {job.id: (job.gpus, job.duration / 3600) for job in jobs_of(rows, **options)}


# --- GPUs -----------------------------------------------------------------------------------------


def test_each_row_is_read_by_its_own_first_column_that_names_gpus() -> None:
    found = facts(f"""
JobID|Submit|ElapsedRaw|AllocTRES|AllocGRES|ReqTRES|ReqGRES|NNodes
1|{AT(8)}|3600|cpu=4,node=1|gpu:2(IDX:0-1)|||1
2|{AT(8)}|3600|cpu=4,node=1,gres/gpu=4|gpu:2|||1
3|{AT(8)}|3600|cpu=4|||gpu:2|3
4|{AT(8)}|3600|cpu=4||gres/gpu:a100=8||2
5|{AT(8)}|3600|cpu=4,license/abq_gpu=8||||1
6|{AT(8)}|3600|cpu=4,node=2|||gpu:tesla|
""")
    assert {name: gpus for name, (gpus, _) in found.items()} == {
        **{"1": 2, "2": 4, "3": 6, "4": 8, "5": 0, "6": 2},
    }


def test_gpus_of_a_node_without_a_number_of_nodes_are_said() -> None:
    table = table_of(f"""
JobID|Submit|ElapsedRaw|ReqGRES
1|{AT(8)}|3600|gpu:2
""")
    assert table.rows[0].job.gpus == 2
    assert table.notes == [
        "ReqGRES names the GPUs of one node; rows without a number of nodes (NNodes), read as one"
        " node: 1"
    ]


@pytest.mark.parametrize("column", ["ReqGRES", "TresPerNode"])
def test_gpus_of_a_node_count_on_each_node(column: str) -> None:
    rows = f"""
JobID|Submit|ElapsedRaw|NNodes|{column}
1|{AT(8)}|3600|3|gres:gpu:2
"""
    assert facts(rows) == {"1": (6, 1.0)}


def test_a_file_that_names_no_gpu_says_so() -> None:
    rows = f"""
JobID|Submit|ElapsedRaw|AllocTRES|ReqGRES
1|{AT(8)}|3600|cpu=4,gres/a100=2|craynetwork:1
"""
    message = (
        r"^column AllocTRES: expected gres/gpu in some row of jobs.txt, got none in AllocTRES, "
        r"ReqGRES; they name gres/a100, gres/craynetwork$"
    )
    with pytest.raises(InstanceError, match=message):
        table_of(rows)
    table = table_of(rows, min_gpus=0)
    assert table.rows[0].job.gpus == 0
    assert table.notes[0] == "rows of jobs without GPUs: 1"


def test_a_job_without_gpus_has_none_in_the_instance(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(
        f"JobID|Submit|ElapsedRaw|AllocTRES\n1|{AT(8)}|3600|cpu=4\n2|{AT(8)}|3600|gres/gpu=2\n"
    )
    instance = SLURM.instance(path, SlurmOptions(min_gpus=0))
    assert [(job.id, job.worker["gpu"]) for job in instance.jobs] == [("1", 0.0), ("2", 1.0)]
    instance = SLURM.instance(path, SlurmOptions())
    assert [job.id for job in instance.jobs] == ["2"]
    assert instance.metadata["left_out"]["gpus"] == 1


def test_what_is_not_understood_is_counted_with_its_first_row() -> None:
    table = table_of(f"""
JobID|Submit|ElapsedRaw|AllocTRES
1|{AT(8)}|3600|gres/gpu=2
2|{AT(8)}|3600|gres/gpu=2
3|{AT(8)}|3600|gres/gpu=two
4|{AT(8)}|3600|gres/shard=2
""")
    assert table.malformed == {
        "resources not understood: gres/gpu=two": {"count": 1, "first_row": 4},
        "a part of a GPU, not a whole one: gres/shard=2": {"count": 1, "first_row": 5},
    }


# --- several rows of one job ----------------------------------------------------------------------

REQUEUED = f"""
JobID|User|Submit|Start|End|ElapsedRaw|State|AllocTRES
838|ann|{AT(1)}|{AT(1)}|{AT(2)}|3600|PREEMPTED|gres/gpu=4
839|bob|{AT(1)}|{AT(1)}|{AT(2)}|3600|COMPLETED|gres/gpu=2
838|ann|{AT(2)}|{AT(3)}|{AT(4)}|3600|NODE_FAIL|gres/gpu=4
838|ann|{AT(4)}|{AT(5)}|{AT(7)}|7200|COMPLETED|gres/gpu=4
"""


def test_the_runs_of_a_job_are_joined() -> None:
    found = table_of(REQUEUED)
    assert facts(REQUEUED) == {"838": (4, 4.0), "839": (2, 1.0)}
    assert found.rows[0].job.submitted == found.rows[1].job.submitted
    assert not found.malformed
    assert found.notes == [
        "jobs with several runs: 1 in 3 rows; one job each, with the work of all its runs"
        " (--runs joined)"
    ]


def test_the_last_run_or_each() -> None:
    assert facts(REQUEUED, runs="last") == {"838": (4, 2.0), "839": (2, 1.0)}
    last, _ = sorted(jobs_of(REQUEUED, runs="last"), key=lambda job: job.id)
    assert last.submitted - jobs_of(REQUEUED)[0].submitted == 3 * 3600
    assert facts(REQUEUED, runs="each") == {
        **{"838": (4, 1.0), "839": (2, 1.0), "838#2": (4, 1.0), "838#3": (4, 2.0)},
    }


def test_the_order_of_rows_does_not_matter() -> None:
    head, *rows = REQUEUED.strip().splitlines()
    for rule in ("joined", "last", "each"):
        other = facts("\n".join([head, *rows[::-1]]), runs=rule)
        assert other == facts(REQUEUED, runs=rule)


def test_runs_of_different_width_keep_their_work() -> None:
    rows = f"""
JobID|Submit|Elapsed|State|AllocTRES
7|{AT(1)}|01:00:00|REQUEUED|gres/gpu=2
7|{AT(2)}|02:00:00|COMPLETED|gres/gpu=4
"""
    assert facts(rows) == {"7": (4, 2.5)}
    assert "jobs whose runs had different numbers of GPUs: 1" in table_of(rows).notes[1]


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "CONFIGURING", "R", "SUSPENDED"])
def test_a_job_whose_last_run_goes_on_has_not_ended(state: str) -> None:
    rows = f"""
JobID|Submit|ElapsedRaw|State|AllocTRES
7|{AT(1)}|3600|PREEMPTED|gres/gpu=2
7|{AT(2)}|60|{state}|gres/gpu=2
8|{AT(2)}|3600|PREEMPTED|gres/gpu=2
"""
    table = table_of(rows)
    assert [row.job.id for row in table.rows] == ["8"]
    assert table.malformed == {
        "run of a job that has not ended": {"count": 1, "first_row": 2},
        "has not ended": {"count": 1, "first_row": 3},
    }
    assert table.notes == []  # no job was joined
    assert table_of(rows, runs="last").notes == []
    assert facts(rows, runs="each") == {"7": (2, 1.0), "8": (2, 1.0)}


def test_an_earlier_run_whose_end_was_never_recorded_is_said_to_be_left_out() -> None:
    rows = f"""
JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES
7|{AT(1)}|{AT(1)}|Unknown|3600|RUNNING|gres/gpu=2
7|{AT(2)}|{AT(2)}|{AT(4)}|7200|COMPLETED|gres/gpu=2
"""
    table = table_of(rows)
    assert facts(rows) == {"7": (2, 2.0)}
    assert table.malformed == {"run of a job that has not ended": {"count": 1, "first_row": 2}}


def test_a_requeued_run_without_an_end_goes_on() -> None:
    table = table_of(f"""
JobID|Submit|Start|End|ElapsedRaw|AllocTRES
7|{AT(1)}|{AT(1)}|Unknown|3600|gres/gpu=2
8|{AT(1)}|{AT(1)}|{AT(2)}|3600|gres/gpu=2
""")
    assert list(table.malformed) == ["has not ended"]


def test_a_row_that_is_there_twice_is_one_run() -> None:
    row = f"7|{AT(1)}|3600|COMPLETED|gres/gpu=2"
    table = table_of(f"JobID|Submit|ElapsedRaw|State|AllocTRES\n{row}\n{row}\n")
    assert [row.job.duration for row in table.rows] == [3600.0]
    assert table.malformed == {"repeated row": {"count": 1, "first_row": 3}}


def test_a_number_that_another_user_got_later_is_another_job() -> None:
    assert facts(f"""
JobID|User|Submit|ElapsedRaw|AllocTRES
7|ann|{AT(1)}|3600|gres/gpu=2
7|bob|{AT(2)}|7200|gres/gpu=4
""") == {"7": (2, 1.0), "7#2": (4, 2.0)}


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    rows = f"""
JobID|Submit|ElapsedRaw|State|AllocTRES
838+0|{AT(1)}|3600|COMPLETED|gres/gpu=4
838+1|{AT(1)}|3600|COMPLETED|gres/gpu=2
838+2|{AT(1)}|3600|COMPLETED|cpu=4
838+0.batch|{AT(1)}|3600|COMPLETED|gres/gpu=4
900+0|{AT(1)}|3600|REQUEUED|gres/gpu=4
900+1|{AT(1)}|3600|REQUEUED|gres/gpu=4
900+0|{AT(2)}|7200|COMPLETED|gres/gpu=4
900+1|{AT(2)}|7200|COMPLETED|gres/gpu=4
"""
    assert facts(rows) == {"838": (6, 1.0), "900": (8, 3.0)}
    assert facts(rows, runs="last") == {"838": (6, 1.0), "900": (8, 2.0)}


def test_tasks_of_an_array_are_jobs_and_steps_are_none() -> None:
    assert facts(f"""
JobID|Submit|ElapsedRaw|State|AllocTRES
838_1|{AT(1)}|3600|COMPLETED|gres/gpu=4
838_1.0||3600|COMPLETED|gres/gpu=4
838_1.extern|||COMPLETED|gres/gpu=4
838_2|{AT(1)}|3600|COMPLETED|gres/gpu=4
838_[3-9]|{AT(1)}|0|PENDING|
""") == {"838_1": (4, 1.0), "838_2": (4, 1.0)}


def test_runs_are_added_in_the_order_of_the_file() -> None:
    table: TraceTable[Any] = TraceTable()
    runs = [JobRun("b", 3, 0.0, 60.0, 1, {}), JobRun("a", 2, 0.0, 60.0, 1, {})]
    add_jobs(table, [[run] for run in runs], "joined")
    assert [row.job.id for row in table.rows] == ["a", "b"]


# --- times ----------------------------------------------------------------------------------------


def test_start_and_end_where_no_duration_is_given() -> None:
    assert facts(f"""
JobID|Submit|Start|End|ElapsedRaw|AllocTRES
1|{AT(1)}|{AT(2)}|{AT(4)}||gres/gpu=2
2|{AT(1)}|{AT(2)}|{AT(4)}|3600|gres/gpu=2
""") == {"1": (2, 2.0), "2": (2, 1.0)}
    assert facts(f"JobID|Submit|Start|End|AllocTRES\n1|{AT(1)}|{AT(2)}|{AT(4)}|gpu:1") == {
        "1": (1, 2.0)
    }


def test_times_with_zones_and_in_milliseconds() -> None:
    zoned = "JobID|Submit|Start|End|AllocTRES\n1|{0}+01:00|{0}+01:00|{0}Z|gpu:1".format(AT(2))
    assert facts(zoned) == {"1": (1, 1.0)}
    milliseconds = "JobID|Submit|ElapsedRaw|AllocTRES\n1|1709280000000|3600|gpu:1"
    assert jobs_of(milliseconds)[0].submitted == 1709280000.0


def test_a_date_of_digits_is_refused_with_the_forms_that_are_read() -> None:
    rows = "JobID|Submit|ElapsedRaw|AllocTRES\n1|20240301|3600|gpu:1"
    message = r"^row 2: bad Submit: a date of 8 digits, expected ISO 8601 .*--time-format %Y%m%d"
    with pytest.raises(InstanceError, match=message):
        jobs_of(rows)
    assert jobs_of(rows, time_format="%Y%m%d")[0].submitted == 1709251200.0


def test_more_than_half_of_the_rows_must_be_usable() -> None:
    rows = "JobID|Submit|ElapsedRaw|State|AllocTRES\n"
    rows += f"1|{AT(1)}|3600|COMPLETED|gpu:1\n2|2024-W09|3600|COMPLETED|gpu:1\n3|x|60||gpu:1\n"
    rows += f"4|{AT(1)}|5|RUNNING|gpu:1\n5|{AT(1)}|5|RUNNING|gpu:1\n1.batch||||\n1.0||||\n"
    message = (
        r"^row 3: bad Submit: a week date.* \(1 row\); bad Submit: not a time.* \(1 row\); "
        r"2 of the 3 rows of jobs.txt cannot be used; --allow-malformed goes on with the other 1$"
    )
    with pytest.raises(InstanceError, match=message):
        facts(rows)
    assert facts(rows, allow_malformed=True) == {"1": (1, 1.0)}
    half = rows.replace("3|x|60||", f"3|{AT(1)}|60||").replace("2024-W09", "y")
    assert set(facts(half)) == {"1", "3"}


def test_a_file_of_jobs_that_run_says_so() -> None:
    rows = f"JobID|Submit|ElapsedRaw|State|AllocTRES\n1|{AT(1)}|5|RUNNING|gpu:1\n1.0||||\n"
    with pytest.raises(InstanceError, match=r"^row 2: has not ended; none of the 1 rows of jobs"):
        facts(rows)


# --- forms of sacct -------------------------------------------------------------------------------

ROWS = [
    ["JobID", "User", "Submit", "ElapsedRaw", "State", "AllocTRES"],
    ["17", "ann", AT(8), "3600", "COMPLETED", "cpu=16,gres/gpu=4"],
    ["17.batch", "", AT(8), "3600", "COMPLETED", "cpu=16"],
    ["18", "bob", AT(8), "7200", "TIMEOUT", "cpu=16,gres/gpu=2"],
]
EXPECTED = {"17": (4, 1.0), "18": (2, 2.0)}


@pytest.mark.parametrize("delimiter", ["|", ";", "\t", "::", "^", " | ", "~"])
@pytest.mark.parametrize("end", [False, True])
def test_any_delimiter_that_the_header_shows(delimiter: str, end: bool) -> None:
    rows = "\n".join(delimiter.join(row) + (delimiter.rstrip(" ") if end else "") for row in ROWS)
    assert facts(rows) == EXPECTED


def test_a_delimiter_of_letters_is_given() -> None:
    assert facts("\n".join("_x_".join(row) for row in ROWS), delimiter="_x_") == EXPECTED


def fixed(width: int) -> str:
    head, *rows = [
        " ".join(
            cell.rjust(width) if len(cell) <= width else f"{cell[: width - 1]}+" for cell in row
        )
        for row in ROWS
    ]
    return "\n".join([head, " ".join(["-" * width] * len(ROWS[0])), *rows])


def test_columns_of_fixed_width() -> None:
    assert facts(fixed(20)) == EXPECTED


def test_cells_that_are_cut_off_are_named() -> None:
    message = r"^row 3: Submit is cut off \(\+\): print it with sacct --parsable2, or wider: Subm"
    with pytest.raises(InstanceError, match=message):
        facts(fixed(10))
    table = TraceSource("jobs.txt", tuple(fixed(10).splitlines()))
    assert layout_of(table).split(table.lines[2])[5] == "cpu=16,gr+"


def test_a_state_that_is_cut_off_is_read_as_far_as_it_is_sure() -> None:
    rows = f"JobID|Submit|ElapsedRaw|State|AllocTRES\n1|{AT(1)}|60|CANCELLED+|gpu:1\n"
    rows += f"2|{AT(1)}|60|OUT_OF_ME+|gpu:1\n3|{AT(1)}|60|REQUEUE_H+|gpu:1\n"
    table = table_of(rows + f"4|{AT(1)}|60|COMPL+|gpu:1\n")
    assert [row.job.id for row in table.rows] == ["1", "2"]
    assert [kind.partition(" (")[0] for kind in table.malformed] == [
        "State is cut off",
        "has not ended",
    ]


def test_commas_inside_cells_are_named() -> None:
    message = r"^row 2: more cells than columns: is ',' in a cell\? print it with sacct --parsable2"
    with pytest.raises(InstanceError, match=message):
        facts("\n".join(",".join(row) for row in ROWS))
    quoted = "\n".join(",".join(f'"{cell}"' for cell in row) for row in ROWS)
    assert facts(quoted) == EXPECTED


def test_a_file_without_header_says_so_and_takes_the_names_of_columns() -> None:
    rows = "\n".join("|".join(row) for row in ROWS[1:])
    with pytest.raises(
        InstanceError, match=r"^row 1: expected the names of the columns, got a row"
    ):
        facts(rows)
    assert facts(rows, columns=",".join(ROWS[0])) == EXPECTED
    assert facts(rows.replace("|", ";"), columns=",".join(ROWS[0]), delimiter=";") == EXPECTED


def test_fixed_width_without_its_line_of_dashes_is_named() -> None:
    lines = fixed(20).splitlines()
    with pytest.raises(
        InstanceError, match=r"got columns with spaces between and no line of dashes"
    ):
        facts("\n".join([lines[0], *lines[2:]]))


def test_the_default_columns_of_sacct_lack_the_times() -> None:
    rows = "JobID JobName State\n----- ------- -----\n17    train   FAILED\n"
    with pytest.raises(
        InstanceError, match=r"^column Submit: expected this column in jobs.txt, whi"
    ):
        facts(rows)


def json_job(**other: Any) -> dict[str, Any]:
    gpu = {"type": "gres", "name": "gpu", "id": 1001, "count": 4}
    return {
        "job_id": 17,
        "user": "ann",
        "partition": "gpu",
        "qos": "normal",
        "time": {"submission": 1709280000, "start": 1709280060, "end": 1709283660, "elapsed": 3600},
        "tres": {"allocated": [{"type": "cpu", "name": "", "count": 16}, gpu], "requested": []},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "het": {"job_id": 0, "job_offset": {"set": False, "number": 0}},
        **other,
    }


def test_json() -> None:
    set_to = {"set": True, "infinite": False}
    jobs = [
        json_job(),
        json_job(job_id=18, state={"current": "RUNNING"}),
        json_job(job_id=19, array={"job_id": 19, "task_id": {**set_to, "number": 0}}),
        json_job(job_id=21, het={"job_id": 21, "job_offset": {**set_to, "number": 0}}),
        json_job(job_id=22, het={"job_id": 21, "job_offset": {**set_to, "number": 1}}),
        json_job(job_id=23, time={**json_job()["time"], "elapsed": {**set_to, "number": 7200}}),
    ]
    text = json.dumps({"meta": {}, "jobs": jobs}, indent=1)
    assert facts(text) == {"17": (4, 1.0), "19_0": (4, 1.0), "21": (8, 1.0), "23": (4, 2.0)}
    table = table_of(text)
    assert table.rows[0].labels == {"user": "ann", "partition": "gpu", "qos": "normal"}
    assert table.rows[0].job.started == 1709280060
    assert table.malformed == {"has not ended": {"count": 1, "first_entry": 2}}


def test_json_of_another_kind_is_refused() -> None:
    table: TraceTable[Any] = TraceTable(unit="entry")
    for text, message in (
        ("{", "expected JSON"),
        ('{"jobs": 3}', "expected the list of jobs"),
        ('{"jobs": []}', "expected at least one job, got an empty list"),
    ):
        with pytest.raises(InstanceError, match=message):
            json_rows(TraceSource("jobs.json", (text,)), table)


def test_what_is_no_job_in_a_json_list_is_counted() -> None:
    table = table_of(json.dumps({"jobs": [7, json_job(), {"name": "x"}, json_job(job_id=18)]}))
    assert [row.job.id for row in table.rows] == ["17", "18"]
    assert table.malformed == {"not an object with a job_id": {"count": 2, "first_entry": 1}}
    assert malformed_sentences({"jobs": table.malformed}) == [
        "jobs: 2 malformed entries (not an object with a job_id), first at entry 1"
    ]


# --- odd sites ------------------------------------------------------------------------------------


def test_old_and_new_words_for_gpus_of_sacct() -> None:
    found = facts(f"""
JobID|Submit|ElapsedRaw|AllocGRES|ReqGRES|NNodes
1|{AT(8)}|3600|7696487:2||1
2|{AT(8)}|3600||PER_NODE:gpu:2|3
3|{AT(8)}|3600||PER_NODE:gpu:tesla:4,PER_NODE:nic:1|2
4|{AT(8)}|3600|PER_NODE:gpu:2||2
5|{AT(8)}|3600|7696487:0|gpu:2|2
""")
    assert {name: gpus for name, (gpus, _) in found.items()} == {
        **{"1": 2, "2": 6, "3": 8, "4": 4, "5": 4},
    }


def test_gpus_of_each_task_or_socket_are_not_guessed() -> None:
    table = table_of(f"""
JobID|Submit|ElapsedRaw|ReqGRES|NNodes
1|{AT(8)}|3600|gpu:2|1
2|{AT(8)}|3600|PER_TASK:gpu:1|1
""")
    assert table.malformed == {
        "resources not understood: PER_TASK:gpu:1": {"count": 1, "first_row": 3}
    }


def test_mig_slices_by_other_names_are_parts_too() -> None:
    table = table_of(f"""
JobID|Submit|ElapsedRaw|AllocTRES
1|{AT(8)}|3600|gres/gpu:a100_80gb=2
2|{AT(8)}|3600|gres/gpu:a100-mig-3g=1
3|{AT(8)}|3600|gres/gpu:h100_1g.12gb+me=1
4|{AT(8)}|3600|gres/gpu:amigo=1
""")
    assert [row.job.gpus for row in table.rows] == [2, 1]
    assert table.malformed == {
        "a part of a GPU, not a whole one: gres/gpu:a100-mig-3g=1": {"count": 2, "first_row": 3}
    }


def test_two_clusters_give_the_same_number_to_two_jobs() -> None:
    rows = f"""
Cluster|JobID|User|Submit|ElapsedRaw|State|AllocTRES
a|838|ann|{AT(8)}|3600|COMPLETED|gres/gpu=2
b|838|ann|{AT(9)}|7200|COMPLETED|gres/gpu=4
b|838|ann|{AT(8)}|3600|PREEMPTED|gres/gpu=4
"""
    assert facts(rows) == {"838": (2, 1), "838#2": (4, 3)}
    job = {"job_id": 838, "user": "ann", "tres": {"allocated": "gres/gpu=2"}}
    time = {"submission": 1709280000, "elapsed": 3600}
    jobs = [{**job, "time": time, "cluster": cluster} for cluster in "ab"]
    assert facts(json.dumps({"meta": {}, "jobs": jobs})) == {"838": (2, 1), "838#2": (2, 1)}


def test_heterogeneous_jobs_are_said() -> None:
    table = table_of(f"""
JobID|Submit|ElapsedRaw|AllocTRES
838+0|{AT(8)}|3600|gres/gpu=2
838+1|{AT(8)}|7200|gres/gpu=4
""")
    assert table.notes == [
        "heterogeneous jobs: 1; the GPUs of their components are added, for as long as their work"
        " needs"
    ]


@pytest.mark.parametrize("option", ["user", "partition", "qos"])
def test_a_choice_by_a_column_that_is_not_there_is_refused(option: str) -> None:
    table = table_of(f"JobID|Submit|ElapsedRaw|AllocTRES\n1|{AT(8)}|3600|gres/gpu=2\n")
    with pytest.raises(InstanceError, match=f"^{option}: expected a file with a column of it"):
        chosen_rows(table, SlurmOptions(**{option: "x"}))


def test_a_column_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InstanceError, match=r"^column Submit: expected this column once"):
        table_of(f"JobID|Submit|Submit|Elapsed|AllocTRES\n1|{AT(8)}|{AT(9)}|1:00:00|gres/gpu=1\n")


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_quoted_cells_between_other_signs_than_commas(delimiter: str) -> None:
    rows = [["JobID", "Submit", "Elapsed", "AllocTRES"], ["7", AT(8), "01:00:00", "gres/gpu=2"]]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    assert facts(text) == {"7": (2, 1)}


@pytest.mark.parametrize("user", ["    jörg", "   jörg", "  ééé"])  # 8 characters, or bytes
def test_fixed_width_counts_bytes_as_sacct_does_or_characters(user: str) -> None:
    table = table_of(f"""
JobID      User              Submit ElapsedRaw    AllocGRES
------ -------- ------------------- ---------- ------------
7      {user} {AT(8)}       3600 gpu:tesla:12
8           ann {AT(8)}       3600        gpu:2
""")
    assert not table.malformed
    assert [(row.job.gpus, row.labels["user"]) for row in table.rows] == [
        (12, user.strip()),
        (2, "ann"),
    ]


def test_rows_that_do_not_stand_below_their_columns_are_named() -> None:
    rule = "------ ------------------- ---------- ---------- "
    header = " JobID              Submit ElapsedRaw  AllocGRES "
    row = f"7      {AT(8)}       3600      gpu:2 "
    table = table_of("\n".join([header, rule, row, "12345678" + row]))
    assert len(table.rows) == 1
    [kind] = table.malformed
    assert kind.startswith("cells do not stand below the names of their columns")


def test_a_run_that_was_never_closed_before_one_that_ended_is_said() -> None:
    table = table_of(f"""
JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES
7|{AT(6)}|{AT(6)}|Unknown|9999|RUNNING|gres/gpu=2
7|{AT(8)}|{AT(8)}|{AT(9)}|3600|COMPLETED|gres/gpu=2
""")
    assert [(row.job.gpus, row.job.duration) for row in table.rows] == [(2, 3600)]
    assert table.malformed == {"run of a job that has not ended": {"count": 1, "first_row": 2}}


def test_blank_lines_above_the_header_of_sacct_are_no_header() -> None:
    text = f"JobID|Submit|Elapsed|AllocTRES\n7|{AT(8)}|01:00:00|gres/gpu=2"
    source = TraceSource("jobs.txt", ("", " ", *text.splitlines()))
    assert SLURM.table(source, SlurmOptions()).rows[0].job.id == "7"
