"""What a schedule costs row by row, where most of it arises, and why a job was rejected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oasis.model.forms import Form
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant, Deadline
from oasis.online.best_schedule import best_schedule, result_of
from oasis.online.ledger import Ledger
from oasis.online.rejection import (
    Cost,
    Reason,
    bottleneck,
    explain_rejection,
    scarcest_resource,
    schedule_cost,
    why_none,
)
from oasis.online.search import Search, searches
from tests import builders

CLUSTER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 10.0}, ps={"bandwidth_gbps": 10.0}
)
# 4 worker-slots, at most 4 workers at once; one parameter server for every two workers.
JOB = builders.job(
    "j",
    workers=4,
    worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
    ps={"bandwidth_gbps": 2.0},
    utility=Constant(10.0),
)
HORIZON = 3


def ledger(
    worker_price: float = 0.0, ps_price: float = 0.0, used: float = 0.0, horizon: int = HORIZON
) -> Ledger:
    """Every resource at one price per unit in each group, and GPUs taken on each server."""
    arrays = {
        "worker_prices": np.full((horizon, 2, 2), worker_price),
        "ps_prices": np.full((horizon, 1, 2), ps_price),
        "worker_used": np.zeros((horizon, 2, 2)),
        "ps_used": np.zeros((horizon, 1, 2)),
    }
    arrays["worker_used"][:, :, 0] = used
    return Ledger.of_arrays(CLUSTER, **arrays)


def test_slots_of_a_rolled_ledger_are_absolute():
    book = ledger(worker_price=1.0)
    book.roll(2, None)
    book.worker.price[0, 0, 0] = 7.0  # prices belong to rows now: row 0 is slot 2
    assert schedule_cost(Schedule("j", [[2, 0, 1]], []), JOB, book).workers.tolist() == [[7.0, 1.0]]


def test_the_fewest_servers_and_slots_that_carry_half_of_it_are_named():
    """On server 1: 5 of 9; so it alone carries half. In slots 0, 1, 2: 4, 3, 2: two are needed."""
    rows = [[0, 0, 1], [0, 1, 1], [1, 1, 1], [2, 0, 1]]
    workers = np.array([[2.0, 0.0], [2.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    found = bottleneck(Schedule("j", rows, []), Cost(workers, np.zeros((0, 2))), CLUSTER)
    assert found is not None
    assert (found.resource, found.group, found.cost, found.share) == ("gpu", "worker", 9.0, 1.0)
    assert (found.servers, found.slots) == (("w#1",), (0, 1))


def reason(job: Job, book: Ledger) -> str:
    search = Search(job, book)
    return why_none(search, explain_rejection(search))


SCARCE = "the last completion that counts; scarcest is gpu of the worker servers"


@pytest.mark.parametrize(
    ("changes", "used", "told"),
    [
        ({"arrival": 2, "epochs": 2}, 0.0, f"{Reason.HORIZON}: needs 2 slots, 1 remain"),
        ({"arrival": 3}, 0.0, f"{Reason.HORIZON}: needs 1 slots, 0 remain"),
        ({"utility": Constant(0.0)}, 0.0, Reason.WORTHLESS),
        # 3.5 of 4 GPUs taken on each server: no worker fits in any of the three slots.
        ({}, 3.5, f"no room: 0 of 4 worker-slots free by slot 2, {SCARCE}"),
        # Room is counted up to the last completion that counts.
        (
            {"utility": Deadline(10.0, 0.0)},
            3.0,
            f"no room: 2 of 4 worker-slots free by slot 0, {SCARCE}",
        ),
    ],
)
def test_a_job_that_cannot_be_admitted_is_told_why(changes, used, told):
    assert reason(replace(JOB, **changes), ledger(used=used)) == told


def test_the_reason_names_the_resource_of_the_bottleneck():
    """GPUs are scarcest by slot 0, but the schedule that ends later pays for parameter servers."""
    hurried = replace(JOB, utility=Deadline(10.0, 0.0))
    book = ledger(worker_price=1.0, ps_price=9.0, used=3.0)
    assert scarcest_resource(Search(hurried, book), 0) == "gpu of the worker servers"
    spot = explain_rejection(Search(hurried, book)).bottleneck
    assert (spot.resource, spot.group) == ("bandwidth_gbps", "ps")
    assert reason(hurried, book) == (
        "no room: 2 of 4 worker-slots free by slot 0, the last completion that counts; "
        "later it would pay most for bandwidth_gbps of the ps servers"
    )


def test_parameter_servers_may_be_what_is_scarce():
    book = ledger()
    book.ps.used[1] = 9.0  # one Gbit/s left in every slot, a parameter server needs two
    assert reason(JOB, book).endswith("scarcest is bandwidth_gbps of the ps servers")
    assert scarcest_resource(Search(JOB, book), 2) == "bandwidth_gbps of the ps servers"


def test_a_job_that_costs_too_much_is_told_the_factor():
    """Four workers of 2 units at price 2 are 16, two parameter servers of 2 units at 1 are 4."""
    book = ledger(2.0, 1.0)
    search = Search(JOB, book)
    rejection = explain_rejection(search)
    assert rejection is not None
    assert rejection.smallest_utility == 20.0
    assert rejection.utility_factor == 2.0
    assert reason(JOB, book) == (
        "payoff not positive: every schedule costs at least 2 times what the job is worth at its "
        "completion"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"ps_prices": np.zeros((3, 2, 2))},
            r"ps_prices: expected shape \(3, 1, 2\), got \(3, 2, 2\)",
        ),
        ({"worker_used": np.full((3, 2, 2), -1.0)}, "worker_used: expected finite numbers >= 0"),
        ({"worker_prices": np.full((3, 2, 2), np.nan)}, "worker_prices: expected finite numbers"),
        ({"granularity": "slot"}, "granularity: expected worker-slot or chunk, got 'slot'"),
    ],
)
def test_arrays_of_another_market_are_refused(changes, message):
    worker, ps = np.zeros((3, 2, 2)), np.zeros((3, 1, 2))
    given_arrays = {"worker_prices": worker, "ps_prices": ps, "worker_used": worker, "ps_used": ps}
    with pytest.raises(ValueError, match=message):
        best_schedule(JOB, CLUSTER, 3, **(given_arrays | changes))


def test_a_job_that_no_machine_admits_is_told_the_label():
    only = replace(JOB, requires={"gpu": ["h100"], "zone": ["b", "c"]})
    assert result_of(searches(only, ledger())).reason == (
        "no machine admits it: label gpu of the worker servers; "
        "its workers require gpu is h100, zone is b or c"
    )
    # Also where the labels of the hosts are to blame, and where it could not end in time anyway.
    hosts = replace(JOB, ps_requires={"zone": ["b"]}, arrival=HORIZON - 1, epochs=99)
    served = replace(hosts, worker={**JOB.worker, "bandwidth_gbps": 1.0})
    reason = result_of(searches(served, ledger())).reason
    assert reason is not None
    assert reason.startswith("no machine admits it: label zone of the parameter-server hosts")


def test_of_several_forms_the_nearest_gives_the_reason():
    """And what it would take is the least of all forms."""
    late = Form(minibatch_time=1000.0)
    elsewhere, dear = Form(requires={"gpu": ["h100"]}), Form(minibatch_time=2.0)
    book, job = ledger(2.0, 0.5), replace(JOB, utility=Constant(1e-3))
    told = result_of(searches(replace(job, forms=(elsewhere, late, dear, Form())), book))
    alone = result_of(searches(job, book))
    assert alone.reason is not None
    assert told.reason == f"{alone.reason} (form 3, the nearest of 4)"
    assert told.rejection == alone.rejection
    lost = result_of(searches(replace(job, forms=(elsewhere, late)), book))
    assert lost.reason is not None
    assert lost.reason.startswith("cannot finish by the horizon")
    assert lost.reason.endswith("(form 1, the nearest of 2)")
    assert lost.rejection is None
