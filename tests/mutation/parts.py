"""The table of what is mutated: edit it when a module moves.

Paths are relative to the root of the project and may hold the wildcards of `Path.glob`; each must
match at least one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the core.

    Parameters
    ----------
    name : str
        Its name on the command line and in `equivalent.toml`.
    modules : tuple of str
        The files that are mutated.
    tests : tuple of str
        The test files that have to notice, the quickest first.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


U, P, O = "tests/unit/", "tests/properties/", "tests/oracle/"  # noqa: E741

ALWAYS = ("tests/packaging/test_data_classes.py",)  # after the tests of each part

PARTS = (
    Part(
        "prices",
        ("oasis/online/prices.py",),
        (U + "online/test_prices*.py", P + "test_price_functions.py", P + "test_io_round_trip.py"),
    ),
    Part(
        "ledger",
        ("oasis/online/ledger.py",),
        (
            U + "online/test_ledger*.py",
            P + "test_server_groups.py",
            P + "test_online_contract.py",
            U + "online/test_rolling_horizon.py",
            P + "test_search_fast_path.py",
        ),
    ),
    Part(
        "search",
        ("oasis/online/search.py",),
        (
            U + "online/test_search*.py",
            U + "online/test_online*.py",
            U + "online/test_minimum_of_workers.py",
            P + "test_search_fast_path.py",
            P + "test_theorem1_optimality.py",
        ),
    ),
    Part(
        "split",
        ("oasis/online/dp/*.py",),
        (
            U + "online/test_split*.py",
            P + "test_theorem1_optimality.py",
            P + "test_search_fast_path.py",
        ),
    ),
    Part(
        "verify",
        ("oasis/certify/verify.py",),
        (U + "certify/test_verify*.py", U + "certify/test_suspects.py"),
    ),
    Part(
        "certificate",
        ("oasis/certify/certificate.py",),
        (U + "certify/test_certificate.py", P + "test_theorem4_corrected.py"),
    ),
    Part(
        "duality",
        ("oasis/certify/duality.py",),
        (U + "certify/test_duality.py", P + "test_theorem2_feasibility_and_weak_duality.py"),
    ),
    Part(
        "engine",
        ("oasis/driver/loop.py", "oasis/simulator/engine.py"),
        (
            U + "simulator/test_simulator_engine*.py",
            U + "simulator/test_simulate.py",
            P + "test_simulator.py",
        ),
    ),
    Part(
        "capacities",
        ("offline/model/capacities.py",),
        (
            U + "offline/test_covers.py",
            U + "offline/test_capacities.py",
            U + "offline/test_model.py",
            U + "offline/test_capacity_by_a_hair.py",
        ),
    ),
    Part(
        "cuts",
        ("offline/patterns.py",),
        (U + "offline/test_cuts*.py", U + "offline/test_cuts.py", U + "offline/test_benders.py"),
    ),
    Part(
        "slot cuts",
        ("offline/column_generation/restricted_master.py", "offline/column_generation/cutting.py"),
        (
            U + "offline/test_slot_cuts.py",
            U + "offline/test_cutting.py",
            U + "offline/test_column_generation_parts.py",
        ),
    ),
    Part(
        "counts",
        (
            "offline/benders/master.py",
            "offline/model/schedule_model.py",
            "offline/model/constraints.py",
        ),
        (
            U + "offline/test_master*.py",
            U + "offline/test_fewest_ps.py",
            U + "offline/test_milp_agreement.py",
            U + "offline/test_benders.py",
            U + "offline/test_separation.py",
        ),
    ),
    Part(
        "benders",
        ("offline/benders/solve.py", "offline/benders/decomposition.py"),
        (
            U + "offline/test_benders*.py",
            U + "offline/test_interrupted_benders.py",
            U + "offline/test_benders.py",
            U + "offline/test_separation.py",
        ),
    ),
    Part(
        "periods",
        ("offline/periods.py",),
        (U + "offline/test_periods.py", U + "offline/test_period_bounds.py"),
    ),
    Part(
        "elastic bound",
        ("offline/elastic_bound.py",),
        (
            U + "offline/test_elastic_bound_parts.py",
            U + "offline/test_mean_bound_parts.py",
            U + "offline/test_elastic_bound.py",
        ),
    ),
    Part(
        "rigid bounds",
        ("offline/rigid_bound.py", "offline/rigid_utility.py"),
        (
            U + "offline/test_rigid*.py",
            U + "offline/test_whatif_bound.py",
        ),
    ),
    Part(
        "priced bound",
        ("offline/column_generation/bound.py",),
        (U + "offline/test_column_generation_parts.py", U + "offline/test_column_generation.py"),
    ),
    Part(
        "worker counts",
        ("oasis/model/worker_counts.py",),
        (U + "model/test_worker_counts.py",),
    ),
    Part(
        "shortfall",
        (
            "offline/benders/subproblem.py",
            "offline/benders/slot_model.py",
        ),
        (
            U + "offline/test_filling.py",
            U + "offline/test_slot_model.py",
            U + "offline/test_shortfall.py",
            U + "offline/test_cuts.py",
        ),
    ),
    Part(
        "plans",
        ("offline/benders/primal.py",),
        (
            U + "offline/test_plans_and_primal.py",
            U + "offline/test_close_plans.py",
            U + "offline/test_separation.py",
        ),
    ),
)


def files(patterns: tuple[str, ...], root: Path = ROOT) -> list[str]:
    """The files that `patterns` match, in their order, as paths relative to `root`.

    Raises
    ------
    FileNotFoundError
        If a pattern matches nothing.
    """
    found: list[str] = []
    for pattern in patterns:
        matches = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
        if not matches:
            raise FileNotFoundError(f"tests/mutation/parts.py: no file matches {pattern!r}")
        found += [match for match in matches if match not in found]
    return found
