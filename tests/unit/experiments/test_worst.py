"""The search for the worst case: it finds what was made by hand, and what it says is true."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import oasis
from experiments.cli import main
from oasis import (
    FIFO,
    SRTF,
    BasePolicy,
    Plan,
    Recourse,
    Space,
    View,
    competitive_ratio,
    worst_case,
)
from offline import solve

TINY = Space(jobs=2, slots=1, gpus=1, workers=1, work=1, values=(1, 7))
SMALL = Space(jobs=3, slots=3, gpus=2, workers=2, work=3)
make_oasis = oasis.OASiS.from_instance


class Idle(BasePolicy):
    def decide(self, view: View) -> Plan:
        return Plan()


def test_it_finds_the_smallest_counterexample_of_the_errata() -> None:
    worst = worst_case(make_oasis, TINY, evaluations=20)
    assert worst.ratio == 7.0
    assert worst.ratio > (worst.result.bound_2alpha or math.inf)


def test_it_finds_the_pair_of_the_errata() -> None:
    space = Space(jobs=2, slots=1, gpus=1000, workers=510, work=510, values=(1, 1e6))
    assert worst_case(make_oasis, space, evaluations=5).ratio == pytest.approx(1e6)


def test_it_finds_the_chain_on_which_recourse_gives_up_job_after_job() -> None:
    space = Space(jobs=3, slots=4, gpus=1, workers=1, work=2, values=(10, 14))
    worst = worst_case(lambda _: Recourse(), space, evaluations=10)
    assert worst.ratio > 1.8  # 22 / 12 by hand, in steps of a tenth


@pytest.mark.parametrize("seed", [0, 1])
def test_the_ratio_is_that_of_the_instance(seed: int) -> None:
    worst = worst_case(lambda _: SRTF(), SMALL, evaluations=25, seed=seed)
    earned = oasis.verify(worst.instance, oasis.simulate(worst.instance, SRTF()))
    optimum = solve(worst.instance, method="bruteforce").objective
    assert worst.result.proven
    assert worst.ratio == (pytest.approx(optimum / earned) if earned else math.inf)
    assert len(worst.instance.jobs) == SMALL.jobs
    assert all(1 <= job.work(3600.0) <= SMALL.work for job in worst.instance.jobs)


def test_a_seed_gives_the_same_instance_again_and_more_instances_are_no_better() -> None:
    found = [worst_case(make_oasis, SMALL, evaluations=n, seed=3) for n in (15, 15, 40)]
    assert found[0].instance == found[1].instance
    assert found[0].ratio <= found[2].ratio
    assert found[0].ratio <= (found[0].result.corrected_ratio_bound or math.inf)


def test_without_any_utility_the_ratio_is_unbounded_and_the_search_ends() -> None:
    worst = worst_case(lambda _: Idle(), SMALL, evaluations=50)
    assert worst.ratio == math.inf
    assert worst.is_complete
    assert worst.evaluations < 50
    assert "earned nothing" in repr(worst)


def test_a_small_space_is_searched_to_its_end() -> None:
    space = Space(jobs=1, slots=1, gpus=1, workers=1, work=1, values=(2, 2))
    worst = worst_case(make_oasis, space, evaluations=100)
    assert worst.ratio == 1.0
    assert worst.is_complete


def test_a_time_limit_ends_the_search_after_what_is_known_to_hurt() -> None:
    worst = worst_case(lambda _: FIFO(), SMALL, evaluations=10**6, time_limit=1e-9)
    assert worst.evaluations == 3
    assert not worst.is_complete


def test_ctrl_c_keeps_the_worst_so_far() -> None:
    def interrupt(count: int, _: float) -> None:
        if count == 3:
            raise KeyboardInterrupt

    worst = worst_case(make_oasis, SMALL, evaluations=50, on_progress=interrupt)
    assert (worst.evaluations, worst.is_complete) == (3, False)


def test_the_command_writes_an_instance_that_others_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "worst.json"
    size = ["--jobs", "2", "--slots", "2", "--gpus", "1", "--workers", "1", "--work", "2"]
    with pytest.raises(SystemExit) as done:
        main.main(["worst", *size, "--evaluations", "20", "-o", str(path)])
    printed = capsys.readouterr().out
    assert done.value.code == 0
    assert "largest ratio found" in printed
    assert "Theorem 16" in printed
    assert oasis.read(path).metadata["worst_case"]["policy"] == "oasis"
    assert competitive_ratio(oasis.read(path)).proven
