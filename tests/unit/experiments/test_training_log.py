"""Files that become elastic jobs: training curves from logs, and the jobs of a trace."""

from __future__ import annotations

import pytest

from baselines import FIFO
from experiments.cli.commands.import_trace import elastic_from_window
from experiments.cli.commands.learn import read_training_log
from oasis import InputError
from oasis.scheduling import TrainingCurve
from oasis.simulator import elastic_from_dict, replay
from oasis.traces.job_table import MachineOptions
from oasis.traces.table import pd


def write(path, text):
    path.write_text(text)
    return path


def test_shares_run_from_the_first_row_to_the_last(tmp_path):
    path = write(tmp_path / "a.csv", "epoch,lr,loss\n10,1,4.0\n20,1,\n30,1,2.0\n\n50,1,1.0\n")
    log = read_training_log(path, value="loss")
    assert log.curve == TrainingCurve(((0.0, 4.0), (0.5, 2.0), (1.0, 1.0)))
    assert (log.length, log.rows, log.empty) == (40.0, 3, 1)
    assert read_training_log(path, position="epoch").curve.at(0.3) == 1.0  # the second column
    with pytest.raises(InputError, match="line 1: expected a column 'acc'"):
        read_training_log(path, value="acc")


def test_a_long_log_becomes_even_pieces_on_the_line_through_its_rows(tmp_path):
    rows = "".join(f"{k},{1000 - k}\n" for k in range(1001))
    log = read_training_log(write(tmp_path / "a.csv", "step,loss\n" + rows), points=8)
    assert [share for share, _ in log.curve.points] == [k / 8 for k in range(9)]
    assert all(log.curve.at(share) == pytest.approx(1000 * (1 - share)) for share in (0, 0.3, 1))


JOBS = {"id": ["a", "b"], "submitted": [0.0, 30.0], "duration": [60.0, 30.0], "gpus": [4, 1]}


def made_of(options):
    return elastic_from_dict(
        elastic_from_window(options.sized(pd.DataFrame(JOBS)), options, options.cluster())
    )


def test_a_fifo_cluster_with_room_runs_them_as_recorded():
    options = MachineOptions(worker_servers=2, gpus_per_server=4, elasticity=1.0)
    outcome = replay(made_of(options), FIFO())
    assert [job.job_id for job in outcome.jobs] == ["a", "b"]
    assert sum(job.work_done for job in outcome.jobs) == pytest.approx(4 * 60 + 30)
    fewer = made_of(MachineOptions(elasticity=0.5))
    assert [job.max_workers for job in fewer.jobs] == [4, 1], "no fewer than recorded"
