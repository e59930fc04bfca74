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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the names of two columns or more"),
        ("step\n1\n2\n", "line 1: expected the names of two columns or more"),
        ("step,loss\n1,2\n", "expected two rows with a value or more, got 1"),
        ("step,loss\n1,2\n1,1\n", "line 3: step: expected more than 1, that of the row before"),
        ("step,loss\n1,2\n2,low\n", "line 3: loss: expected a finite number, got 'low'"),
        ("step,loss\n1,2\n2,nan\n", "line 3: loss: expected a finite number, got 'nan'"),
        ("step,loss\n,2\n2,1\n", "line 2: step: expected a finite number, got ''"),
    ],
)
def test_what_is_wrong_with_a_log_is_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_training_log(write(tmp_path / "a.csv", text))


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seconds"], "--seconds: expected --into, too"),
        (["--ids", "a"], "--ids: expected --into, too"),
        (["--into", "JOBS", "--ids", "x"], "--ids: expected ids of jobs of"),
        (["--into", "LOG"], "a.csv: expected a workload of elastic jobs"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(tmp_path, capsys, words, message):
    log = write(tmp_path / "a.csv", "time,loss\n0,2\n90,1\n")
    jobs = tmp_path / "jobs.json"
    write(jobs, json.dumps(elastic_data(1)))
    files = {"JOBS": str(jobs), "LOG": str(log)}
    said("curve", str(log), *(files.get(word, word) for word in words), code=2)
    assert message in capsys.readouterr().err
