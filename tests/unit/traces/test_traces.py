"""Shared parts of the importers: reading rows, choosing a window, mapping a job."""

from types import SimpleNamespace

import pytest

from oasis import InstanceError
from oasis.traces import PhillyOptions
from oasis.traces.job_table import FIELDS, MachineOptions, PlainTrace, jobs_of
from oasis.traces.table import csv_rows, pd, read_source

HOUR = 3600.0


def record(name, submitted=0.0, duration=2 * HOUR, gpus=2):
    return {"id": name, "submitted": submitted, "duration": duration, "gpus": gpus}


def chosen(records, **options):
    options = MachineOptions(**options)
    frame = pd.DataFrame([{**FIELDS, **each} for each in records], columns=list(FIELDS))
    trace = PlainTrace(options.sized(frame), {})
    trace.window(options)
    return trace, options


def names(records, **options):
    trace, _ = chosen(records, **{"min_gpus": 1} | options)
    return trace.frame["id"].tolist(), trace.left_out


def built(records, **options):
    wide = {"max_duration": 1e9, "min_duration": 0.0, "min_gpus": 1}
    trace, options = chosen(records, **wide | options)
    return jobs_of(trace.frame, options)


def one_job(rec, **options):
    return built([rec], **options)[0]


def table(tmp_path, text, key=None):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rows = csv_rows(read_source(path), ("a", "b"))
    numbers = rows.number("a")
    if key:
        rows.unique(key)
    good = rows.settle()
    found = list(zip(rows.lines[good].tolist(), numbers[good].tolist(), strict=True))
    return SimpleNamespace(rows=found, malformed=rows.malformed)


def test_columns_may_come_in_any_order_and_number(tmp_path):
    found = table(tmp_path, "\ufeffb, x ,a\r\n1,2,3\r\n")
    assert found.rows == [(2, 3.0)]
    assert found.malformed == {}


def test_each_kind_of_malformed_row_is_counted_with_its_first_line(tmp_path):
    lines = ["a,b", "1,2", "a,b", "", "1", "x,2", "1,2,3", ",", "nan,1", "-1,2", "2,2", "inf,3"]
    found = table(tmp_path, "\n".join(lines))
    assert found.rows == [(2, 1.0), (11, 2.0)]
    assert found.malformed == {
        "repeated header": {"count": 1, "first_row": 3},
        "blank row": {"count": 2, "first_row": 4},
        "wrong number of columns": {"count": 2, "first_row": 5},
        "bad a": {"count": 4, "first_row": 6},
    }


def test_a_stray_quote_or_byte_spoils_its_own_row_alone(tmp_path):
    found = table(tmp_path, b'a,b\n"1,2\n\xff,2\n3,\xff\n\x00,1\n"4","5"\n')
    assert found.rows == [(4, 3.0), (6, 4.0)]
    assert sum(kind["count"] for kind in found.malformed.values()) == 3


def test_a_repeated_or_missing_key_is_malformed(tmp_path):
    found = table(tmp_path, "a,b\n1,x\n2,x\n3,\nz,y\n4,y\n", key="b")
    assert found.rows == [(2, 1.0), (6, 4.0)]  # a row that is bad itself takes no name
    assert list(found.malformed) == ["repeated b", "no b", "bad a"]


@pytest.mark.parametrize("header", ["", "a", "a,c", "b", "a,b,b", "a;b"])
def test_a_wrong_header_names_the_column(tmp_path, header):
    with pytest.raises(InstanceError, match=r"expected this column once in the header") as caught:
        table(tmp_path, f"{header}\n1,2\n")
    missing = [name for name in ("a", "b") if header.split(",").count(name) != 1]
    assert caught.value.field == f"column {missing[0]}"
    assert f"; got {2 if header == 'a,b,b' else 'none'}" in caught.value.detail


def test_rules_leave_out_jobs_and_count_them():
    jobs = [
        record("small", gpus=1),
        record("large", gpus=9),
        record("short", duration=60.0),
        record("long", duration=100 * HOUR),
        record("good"),
        record("late", submitted=12 * HOUR),
    ]
    kept, left_out = names(jobs, min_gpus=2, max_duration=10 * HOUR, start="first")
    assert kept == ["good"]
    assert left_out == {"gpus": 2, "duration": 2, "window": 1, "stride": 0, "max_jobs": 0}


def test_jobs_come_in_order_of_submission():
    jobs = [record("c", 30.0), record("a", 10.0), record("b", 10.0)]
    assert names(jobs)[0] == ["a", "b", "c"]


def test_the_busiest_window_has_the_most_work():
    jobs = [record(f"early{k}", k * HOUR) for k in range(3)]
    jobs += [record(f"late{k}", 100 * HOUR + k * HOUR, gpus=4) for k in range(2)]
    assert names(jobs, arrival_slots=6)[0] == ["late0", "late1"]
    assert names(jobs, arrival_slots=6, start="first")[0] == ["early0", "early1", "early2"]


def test_a_window_begins_where_it_is_told_and_excludes_its_end():
    jobs = [record(f"j{k}", k * 1800.0) for k in range(6)]
    assert names(jobs, start="1800", arrival_slots=3)[0] == ["j1", "j2", "j3"]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("spread", ["j0", "j2", "j4"]),
        ("first", ["j0", "j1", "j2"]),
        ("largest", ["j1", "j4", "j5"]),
    ],
)
def test_max_jobs_keeps_the_jobs_that_keep_names(keep, expected):
    gpus = [1, 8, 1, 2, 4, 5]
    jobs = [record(f"j{k}", k * 60.0, gpus=g) for k, g in enumerate(gpus)]
    kept, left_out = names(jobs, keep=keep, max_jobs=3)
    assert kept == expected
    assert left_out["max_jobs"] == 3


def test_an_empty_selection_says_what_was_left_out():
    with pytest.raises(InstanceError, match=r"leave none: kept 0 of 1 job: 1 by GPUs \("):
        names([record("a", gpus=1)], min_gpus=2)
    with pytest.raises(InstanceError, match=r"^expected a job, got none$"):
        names([])


@pytest.mark.parametrize("gpus", [1, 3, 8])
@pytest.mark.parametrize("duration", [17.0, 20.0, 1000.0, 7777.0, 1e5])
@pytest.mark.parametrize("elasticity", [0.3, 1.0, 2.5])
def test_work_is_what_the_trace_records(gpus, duration, elasticity):
    job = one_job(record("a", duration=duration, gpus=gpus), elasticity=elasticity)
    slots = job.epochs * job.chunks * job.minibatches * job.minibatch_slots(1800.0)
    assert slots * 1800.0 == pytest.approx(gpus * duration, rel=1e-12)
    assert job.minibatch_time * 1800.0 >= 8.0 * (1 - 1e-9)
    assert 1 <= job.epochs <= 10
    assert 1 <= job.chunks <= max(1, round(elasticity * gpus))


def test_a_job_shorter_than_its_gradient_exchange_keeps_one_mini_batch():
    job = one_job(record("a", duration=1.0, gpus=1))
    assert (job.epochs, job.chunks, job.minibatches, job.minibatch_time) == (1, 1, 1, 0.0)


def test_a_job_without_gradients_has_no_parameter_servers():
    job = one_job(record("a", gpus=4), gradient_mb=0.0)
    assert (job.needs_ps, job.bandwidth, dict(job.ps)) == (False, 0.0, {})
    assert job.ps_needed([1, 8]).tolist() == [0, 0]
    assert job.work(1800.0) == 4 * 2 * HOUR / 1800.0
    other = one_job(record("a", gpus=4), gradient_mb=1e-3)
    assert (other.needs_ps, other.bandwidth) == (True, 1.0)


def test_arrival_is_the_slot_of_submission_in_the_window():
    jobs = [record("a", 50.0), record("b", 50.0 + 1799.0), record("c", 50.0 + 1800.0)]
    assert [job.arrival for job in built(jobs)] == [0, 0, 1]


def test_the_target_is_relative_to_the_recorded_duration():
    assert one_job(record("a", duration=9000.0)).utility.target == pytest.approx(1.5 * 5)
    assert one_job(record("a", duration=100.0)).utility.target == 1.0


def test_utilities_follow_the_options_and_the_seed():
    def drawn(**options):
        jobs = [record(f"j{k}", float(k)) for k in range(20)]
        return [job.utility for job in built(jobs, **options)]

    assert drawn() == drawn()
    assert drawn() != drawn(seed=1)
    assert all(40 <= u.priority <= 50 for u in drawn(min_priority=40.0, max_priority=50.0))
    decays = [u.decay for u in drawn(insensitive=0.25, critical=0.5)]
    assert sum(d == 0 for d in decays) == 5
    assert sum(4 <= d <= 6 for d in decays) == 10
    assert sum(0 < d <= 1 for d in decays) == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("horizon", 0),
        ("horizon", 3.0),
        ("slot_seconds", 0.0),
        ("slot_seconds", True),
        ("elasticity", -1.0),
        ("worker_bandwidth_gbps", 0.0),
        ("worker_bandwidth_gbps", 6.0),
        ("keep", "some"),
        ("start", 3),
        ("stride", 0),
        ("max_jobs", 0),
        ("min_gpus", 9),
        ("min_duration", 1e9),
        ("min_priority", 101.0),
        ("arrival_slots", 99),
        ("critical", 0.95),
        ("seed", -1),
        ("gpus_per_worker", 0),
        ("worker_servers", 0),
    ],
)
def test_a_bad_option_is_named(name, value):
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        PhillyOptions(**{name: value})
