"""Every policy of the registry keeps the contract, and a policy that breaks it is found."""

from threading import Lock
from typing import ClassVar

import pytest
from hypothesis import settings

import baselines
from oasis import FIFO, Allocation, BasePolicy, BestFit, InputError, Plan, PolicyError, Room
from oasis.testing import CHECKS, check_policy

DEARER = {"dorm": 5}  # solves an MILP each time it is asked


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", baselines.ALL)
def test_policies_keep_the_contract(name, check):
    several = settings().max_examples // 2 // DEARER.get(name, 1)
    check_policy(lambda: baselines.make(name, 1), checks=[check], max_examples=several)


class InTurn(BasePolicy):
    """First come, first served, with as few workers as a job can have."""

    def decide(self, view):
        plan, room = Plan(), Room(self.site, view.free(), view.down())
        for job in self.order(view):
            found = BestFit().place(room, job, job.min_workers, job.ps_needed(job.min_workers))
            if found is not None:
                plan.changes[job.index] = found
        return plan

    def order(self, view):
        return view.waiting()


class OnTheFirst(InTurn):
    """Puts each job on the first machine, whether there is room or not."""

    def decide(self, view):
        return Plan({job.index: Allocation(((0, job.min_workers),)) for job in view.waiting()})


class Lazy(InTurn):
    """Never begins anything."""

    def order(self, view):
        return ()


class Spy(InTurn):
    """Reads the work that it has not declared, past what keeps it from that."""

    def order(self, view):
        tracked = view._books.jobs
        return [job for job in view.waiting() if tracked[job.index].job.work < 5.0]


class Fickle(InTurn):
    """Changes its order from run to run."""

    runs = 0

    def reset(self, site):
        super().reset(site)
        Fickle.runs += 1

    def order(self, view):
        waiting = list(view.waiting())
        return waiting if self.runs % 2 else waiting[::-1]


class Forgetful(InTurn):
    """Keeps what it remembers where no state is saved."""

    memory: ClassVar[dict[int, int]] = {}

    def reset(self, site):
        super().reset(site)
        self.memory[id(self)] = 0

    def order(self, view):
        self.memory[id(self)] += 1
        return view.waiting() if self.memory[id(self)] == 1 else ()


class Unsavable(InTurn):
    """Holds a lock, which no state can hold."""

    def reset(self, site):
        super().reset(site)
        self.lock = Lock()


@pytest.mark.parametrize(
    ("broken", "check", "error", "message"),
    [
        (OnTheFirst, "legal", PolicyError, "onthefirst"),
        (Lazy, "legal", AssertionError, "wait for ever"),
        (Fickle, "past", AssertionError, "decides otherwise without later jobs"),
        (Spy, "untold", AssertionError, "jobs have more work left"),
        (Fickle, "repeats", AssertionError, "decides otherwise"),
        (Forgetful, "restored", AssertionError, "restored before call"),
        (Unsavable, "restored", InputError, "lock: expected plain data"),
        (OnTheFirst, "windows", PolicyError, "onthefirst"),
    ],
)
def test_a_policy_that_breaks_the_contract_is_found(broken, check, error, message):
    with pytest.raises(error, match=f"(?i){message}") as found:
        check_policy(broken, checks=[check], max_examples=200)
    assert "check(" in "".join(found.value.__notes__)  # the case, made small
    check_policy(FIFO, checks=[check], max_examples=5)


def test_checks_are_named() -> None:
    with pytest.raises(InputError, match=r"^checks: .* got 'legally'; did you mean 'legal'"):
        check_policy(FIFO, checks=["legally"])
    with pytest.raises(InputError, match=r"^make: expected what makes a policy"):
        check_policy(FIFO())


class Patient(InTurn):
    """Is asked in each slot, and lets a job wait that fits no machine."""

    slotted = True


def test_a_job_that_fits_no_machine_may_wait() -> None:
    check_policy(Patient, checks=["legal", "repeats"], max_examples=200)
