"""The benchmark of offline methods: its table of solves, and what became of all seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

import oasis
from tests.benchmarks import distribution, table
from tests.benchmarks.distribution import Solve


def solve(seed: int, gap: float, method: str = "compact HiGHS") -> Solve:
    status = "optimal" if gap == 0 else "time_limit"
    return Solve("testbed", f"{seed}", "60", method, status, f"{seed + 1}.0", "100", "-", f"{gap}")


def test_a_row_is_the_distribution_over_the_seeds_and_rows_are_in_the_order_of_the_page() -> None:
    found = [solve(seed, gap) for seed, gap in enumerate((0.0, 4.0, 0.0, 1.0))]
    others = [solve(12, 1.0, "column generation"), solve(2, 4.0, "Benders decomposition")]
    rows = distribution.distribution([*others[::-1], *found, found[-1], solve(5, 4.0)])
    numbers = ("2 of 5", "2.0", "1.00", "4.00", "4.00")
    assert rows[0] == ("testbed", "60", "compact HiGHS", "0 to 3, 5", *numbers)
    assert [row[2:6] for row in rows[1:]] == [
        ("column generation", "12", "0 of 1", "-"),
        ("Benders decomposition", "2", "0 of 1", "-"),
    ]


def test_what_is_solved_is_kept_and_not_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each, shown = tmp_path / "solves.csv", tmp_path / "table.csv"
    table.write(each, [distribution.SOLVES, solve(1, 4.0)])

    def made(seeds: int) -> list[bytes]:
        words = ["--sizes", "3x2x2", "--limit", "5", "--methods", "milp,colgen"]
        given = ["distribution", str(each), "--csv", str(shown), "--seeds", str(seeds), *words]
        monkeypatch.setattr("sys.argv", given)
        distribution.main()
        return [path.read_bytes() for path in (each, shown)]

    before = made(2)
    kept = distribution.known(each)
    assert (kept[0], len(kept)) == (solve(1, 4.0), 5)
    assert {one.status for one in kept[1:]} == {"optimal"}
    monkeypatch.setattr(distribution, "solved", None)
    assert made(2) == made(0) == before


def test_other_files_and_sizes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "solves.csv"
    path.write_text("size,seed\n")
    with pytest.raises(SystemExit, match="expected the columns size, seed, seconds each"):
        distribution.known(path)
    with pytest.raises(SystemExit):
        distribution.arguments(["x.csv", "--sizes", "big"])
    assert distribution.instance("testbed", 3) == oasis.generate("testbed", seed=3)
    assert len(distribution.instance("3x2x5", 1).jobs) == 5
