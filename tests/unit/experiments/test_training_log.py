"""Training curves from logs: shares, thinning, and one line for what is wrong."""

import json

import pytest

from experiments.cli.commands.learn import read_training_log
from experiments.cli.main import main
from oasis import InputError
from oasis.scheduling import TrainingCurve
from oasis.simulator import read_elastic
from tests.builders import elastic_data


def said(*words, code=0):
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    assert (caught.value.code or 0) == code


def write(path, text):
    path.write_text(text)
    return path


def test_shares_run_from_the_first_row_to_the_last(tmp_path):
    path = write(tmp_path / "a.csv", "epoch,lr,loss\n10,1,4.0\n20,1,\n30,1,2.0\n\n50,1,1.0\n")
    log = read_training_log(path, value="loss")
    assert log.curve == TrainingCurve(((0.0, 4.0), (0.5, 2.0), (1.0, 1.0)))
    assert (log.length, log.rows, log.empty) == (40.0, 3, 1)
    assert read_training_log(path, position="epoch").curve.at(0.3) == 1.0  # the second column


def test_a_long_log_becomes_even_pieces_on_the_line_through_its_rows(tmp_path):
    rows = "".join(f"{k},{1000 - k}\n" for k in range(1001))
    log = read_training_log(write(tmp_path / "a.csv", "step,loss\n" + rows), points=8)
    assert [share for share, _ in log.curve.points] == [k / 8 for k in range(9)]
    assert all(log.curve.at(share) == pytest.approx(1000 * (1 - share)) for share in (0, 0.3, 1))


def test_a_column_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="line 1: expected a column 'acc'"):
        read_training_log(write(tmp_path / "a.csv", "step,loss\n0,2\n1,1\n"), value="acc")


def test_the_command_gives_jobs_their_curve_and_work(tmp_path, capsys):
    log = write(tmp_path / "a.csv", "time,loss\n0,2\n90,1\n600,0.5\n")
    said("curve", str(log))
    assert json.loads(capsys.readouterr().out) == [[0.0, 2.0], [0.15, 1.0], [1.0, 0.5]]
    jobs, own = tmp_path / "jobs.json", tmp_path / "own.json"
    write(jobs, json.dumps(elastic_data(3)))
    first = read_elastic(jobs).jobs
    named = ["--ids", f"{first[0].id},{first[2].id}", "--seconds"]
    said("curve", str(log), "--into", str(jobs), *named, "-o", str(own))
    assert "a curve of 3 rows" in capsys.readouterr().err
    made = read_elastic(own).jobs
    assert [job.work for job in made] == [600.0, first[1].work, 600.0]
    assert made[0].curve.at(0.15) == 1.0
    assert made[1].curve == first[1].curve
