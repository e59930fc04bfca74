"""A controller that is killed at any boundary goes on as if nothing had happened."""

from __future__ import annotations

import base64
import copyreg
import json
import os
import pickle
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum, IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from baselines import Kod2
from experiments.evaluation.policies import POLICIES
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.driver.policy_state import _StateReader, policy_state, restore_policy
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.kubernetes.objects.oasis_job import as_it_was
from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry
from oasis.model.errors import OasisError
from oasis.model.groups import TaskGroup
from oasis.scheduling import BasePolicy, JobBook, Plan, PolicyJob, policy_job
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of
from tests.unit.kubernetes.test_live_controllers import live_oasis

EXAMPLE = Path(__file__).parents[3] / "docs/examples/congested.json"
SITE = site_for(oasis.read(EXAMPLE), 10)


def fresh(name: str, instance: oasis.Instance) -> Any:
    if name == "oasis":
        return live_oasis(instance, instance.horizon)
    return POLICIES[name].make(instance)


def reborn(driver: Driver, policy: Any, specs: dict[str, Any]) -> Driver:
    """A driver as a new process makes it from what the old one wrote."""
    saved = policy_state(driver.policy, driver.jobs)
    written = json.loads(json.dumps({"driver": driver.state(), "policy": saved}))
    made = Driver(policy, driver.site)
    made.restore(written["driver"], specs, as_it_was)
    jobs = {index: entry.job for index, entry in made.jobs.items()}
    restore_policy(policy, written["policy"], jobs, driver.site)
    return made


@pytest.mark.parametrize("name", POLICIES)
def test_a_restart_at_every_boundary_changes_nothing(name: str) -> None:
    shipped = oasis.read(EXAMPLE)
    specs, site = specs_of(shipped), site_for(shipped, shipped.horizon)
    instance = instance_of(specs.values(), site, shipped.horizon, {})
    steady = FakeCluster(Driver(fresh(name, instance), site), specs)
    killed = FakeCluster(Driver(fresh(name, instance), site), specs)
    plain = {uid: spec for uid, (spec, _) in specs.items()}
    for slot in range(shipped.horizon + 1):
        steady.step(slot)
        killed.step(slot)
        killed.driver = reborn(killed.driver, fresh(name, instance), plain)
    assert killed.history == steady.history
    assert killed.completed == steady.completed
    assert killed.rejected == steady.rejected


class Evil:
    """A pickle of it calls a function as it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.called = function, arguments

    def __reduce__(self) -> Any:
        return self.called


def ran(*_: Any) -> None:
    raise SystemExit("code of a state was run")


def text_of(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


MADE = ("os:system", "oasis.model.files:os", ":ran")
EVIL = [
    Evil(os.system, f"kill {os.getpid()}"),
    Evil(eval, "__import__('sys').exit()"),
    Evil(getattr, Evil(__import__, "os"), "system"),
    Evil(ran),
    Evil(oasis.read, EXAMPLE),
    Evil(TaskGroup, "ps"),
    Evil(copyreg._reconstructor, PolicyJob, object, None),  # type: ignore[attr-defined]
    Evil(np.ndarray, (1,), "O", b"12345678"),
    Evil(pickle.loads, pickle.dumps(Evil(ran))),
    *(Evil(_StateReader.made, name, None, {}) for name in MADE),
    PolicyJob("a", 0.0, 1.0, ()),
    [],
]


@pytest.mark.parametrize(
    "text",
    [text_of(pickle.dumps(evil, protocol)) for evil in EVIL for protocol in (2, 5)]
    + [None, 3, {}, "", "é", "AAAA", {"is": "object"}],
    ids=lambda _: "",
)
def test_what_no_policy_wrote_is_refused_and_calls_nothing(text: Any) -> None:
    policy = Holding()
    policy.reset(SITE)
    with pytest.raises(OasisError, match=r"^policy state: expected [^\n]+$"):
        restore_policy(policy, text, {}, SITE)


@pytest.mark.parametrize("target", ["site", 0])
def test_a_state_changes_neither_machines_nor_live_jobs(target: Any) -> None:
    policy, live = Holding(), {0: PolicyJob("a", 0.0, 1.0, ())}
    policy.reset(SITE)
    by_name = pickle.dumps(target, 4)[:-1] + b"Q"  # the persistent id, and the object of it
    filled = pickle.dumps(_StateReader.filled, 4)[:-1]
    for content in (by_name + b"}b.", filled + by_name + b"}\x86R."):
        with pytest.raises(OasisError, match=r"BUILD|undamaged: KeyError"):
            restore_policy(policy, text_of(content), live, SITE)


@pytest.mark.parametrize("inner", [True, False])
def test_a_damaged_state_is_refused_or_read(inner: bool) -> None:
    """Whatever bits flip, in the text or in what is packed: one line, and nothing is called."""
    rng, held = np.random.default_rng(5), [called_twice(), Mood.CALM, np.arange(3), deque([1.5])]
    policy = Holding(
        [*held, np.random.default_rng(1), policy_job(oasis.read(EXAMPLE).jobs[0], SITE, 3)]
    )
    policy.reset(SITE)
    text = policy_state(policy, ())
    whole = zlib.decompress(base64.b64decode(text)) if inner else text.encode()
    said = []
    for _ in range(300):
        content = bytearray(whole)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        fresh = Holding()
        fresh.reset(SITE)
        damaged = text_of(bytes(content)) if inner else content.decode("latin-1")
        try:
            restore_policy(fresh, damaged, {}, SITE)
        except OasisError as error:
            said.append(str(error))
    assert len(said) >= (100 if inner else 290)
    assert all(line.startswith("policy state: ") and "\n" not in line for line in said)


class Mood(Enum):
    CALM, HURRIED = "calm", "hurried"


class Level(IntEnum):
    LOW = 1


class Counting:
    """It can be called, and what it counted is part of the state."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


class Holding(BasePolicy):
    """Holds whatever it is given."""

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def decide(self, view: Any) -> Plan:
        return Plan()


def called_twice() -> Counting:
    made = Counting()
    made(), made()
    return made


def read_back(held: Any, live: dict[int, PolicyJob] | None = None, fresh: Any = None) -> Any:
    one, other, jobs = Holding(held), Holding(fresh), live or {}
    one.reset(SITE), other.reset(SITE)
    restore_policy(other, json.loads(json.dumps(policy_state(one, jobs))), jobs, SITE)
    return other.held


@pytest.mark.parametrize(
    "held",
    [
        Mood.HURRIED,
        Level.LOW,
        TaskGroup.PS,
        {Mood.CALM: [Level.LOW]},
        defaultdict(int, {"a": 2}),
        defaultdict(list, {3: [1, 2]}),
        OrderedDict(b=1, a=2),
        Counter("abba"),
        deque([1, 2], maxlen=2),
        np.float32(0.1),
        float("inf"),
    ],
    ids=repr,
)
def test_what_a_policy_holds_is_of_the_same_kind_when_it_is_read_back(held: Any) -> None:
    found = read_back(held)
    assert found == held
    assert type(found) is type(held)
    if isinstance(held, defaultdict):
        assert found["new"] == held.default_factory()
    if isinstance(held, deque):
        assert found.maxlen == held.maxlen


def test_what_never_changes_is_not_filled_in_place_for_others_may_hold_it() -> None:
    held = Calendar((CalendarEntry("w", 2, 5, frozenset({0})),))
    assert read_back(held, fresh=EVER_OPEN) == held
    assert not EVER_OPEN


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_go_on(name: str) -> None:
    held = np.random.Generator(getattr(np.random, name)(7))
    held.integers(9, size=5)
    assert (read_back(held).random(20) == held.random(20)).all()


def test_an_object_that_can_be_called_keeps_its_state() -> None:
    assert read_back(called_twice())() == 3


def first() -> None: ...


class Counted(BasePolicy):
    """Its book asks it, or a function that it was given, how many tasks a job runs with."""

    REMADE = ("given",)

    def __init__(self, given: Any = None) -> None:
        self.given, self.asked, self.held = given, [0], [Counting()]

    def reset(self, site: Any) -> None:
        self.book = JobBook(self.given or self.counts)

    def counts(self, job: PolicyJob) -> tuple[int, int]:
        self.asked.append(job.index)
        return 1, 0

    def decide(self, view: Any) -> Plan:
        return Plan()


def test_functions_stay_those_of_a_fresh_policy() -> None:
    one, other, jobs = Counted(), Counted(), [PolicyJob(n, 0.0, 1.0, ()) for n in "ab"]
    for policy in (one, other):
        policy.reset(SITE)
    one.book.enter(jobs[0], Plan())
    restore_policy(other, policy_state(one, ()), {}, SITE)
    other.book.enter(jobs[1], Plan())
    assert other.asked == [0, -1, -1]


def test_a_subclass_names_what_it_adds() -> None:
    class Own(Kod2):
        REMADE = ("key",)
        key = staticmethod(first)

    one, other = Own(), Own()
    for policy in (one, other):
        policy.reset(SITE)
        policy.key = lambda: None
    restore_policy(other, policy_state(one, ()), {}, SITE)
    Own.REMADE = "key"  # type: ignore[assignment]
    with pytest.raises(OasisError, match="REMADE: expected a tuple of names of attributes, got"):
        policy_state(one, ())


def test_a_function_on_what_is_saved_is_refused() -> None:
    """It would go on with that of the fresh policy, which is another object."""
    policy, alone = Counted(), Counted()
    policy.given, alone.book = policy.held[0].__call__, [JobBook(first)]  # type: ignore[arg-type]
    policy.reset(SITE)
    with pytest.raises(OasisError, match=r"^policy\.held: .* got 'Counting\.__call__'$"):
        policy_state(policy, ())
    held = policy.held
    policy.given = lambda _: held
    with pytest.raises(OasisError, match=r"^policy\.held: .* got 'test_a_function_on_"):
        policy_state(policy, ())
    policy.given = partial(first, held)
    with pytest.raises(OasisError, match=r"^policy\.held: .* got 'a partial'$"):
        policy_state(policy, ())
    with pytest.raises(OasisError, match=r"^policy\.book: .* got 'oasis.scheduling.book.JobBook'$"):
        policy_state(alone, ())
    made, fresh = Counted(), Holding()
    made.reset(SITE), fresh.reset(SITE)
    text = policy_state(made, ())
    made.book = None  # type: ignore[assignment]
    with pytest.raises(OasisError, match=r"has no oasis.scheduling.book:JobBook at policy.book$"):
        restore_policy(made, text, {}, SITE)
    with pytest.raises(OasisError, match=r"^policy state: expected the state of a policy$"):
        restore_policy(fresh, policy_state(Counting(), ()), {}, SITE)


@pytest.mark.parametrize("told", [True, False])
def test_jobs_that_ended_are_remembered(told: bool) -> None:
    """Live jobs are those of the driver; what a policy noted of others is its own."""
    site, shipped = site_for(oasis.read(EXAMPLE), 10), oasis.read(EXAMPLE)
    jobs = [policy_job(job, site, k) for k, job in enumerate(shipped.jobs[:2])]
    seen = [job if told else job.untold("mine") for job in jobs]
    live, ended = read_back(seen, live={0: seen[0]})
    assert live is seen[0]
    assert (type(ended), ended.id, ended.worker) == (type(seen[1]), jobs[1].id, jobs[1].worker)
    if told:
        assert (ended.work, ended.source) == (jobs[1].work, jobs[1].source)
    else:
        with pytest.raises(oasis.PolicyError, match="asked for work"):
            ended.work  # noqa: B018


class Sub(list):  # type: ignore[type-arg]
    ...


def nested(levels: int) -> Any:
    held: Any = 1
    for _ in range(levels):
        held = [held]
    return held


class Odd:
    """An attribute of it cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            raise RuntimeError("not\nnow")
        return super().__getattribute__(name)


class Outer:
    class Inner(Enum):
        ONE = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([1, None], dtype=object),
        lambda: np.zeros(2, dtype=[("a", int)]),
        lambda: np.random.RandomState(3),
        lambda: np.datetime64("2020-01-01"),
        lambda: Sub([1]),
        lambda: Outer.Inner.ONE,
        lambda: defaultdict(lambda: 7),
        lambda: [first],
        lambda: iter([1]),
        lambda: nested(100_000),
        lambda: {"deep": [Odd()]},
    ],
)
def test_what_cannot_be_read_back_is_not_written(make: Callable[[], Any]) -> None:
    with pytest.raises(OasisError, match=r"^policy[.\w]*: expected plain.*names(, got|:) .*\Z"):
        policy_state(Holding(make()), ())
    driver: Driver[Any] = Driver(Holding(make()), SITE)
    assert driver.boundary(0, Facts({})).error is None  # only a later error finds no state
    assert driver.kept_policy is None


LEAVES: list[Callable[[], Any]] = [Odd, Counting, object, lambda: first, lambda: 0.5]
INNER = st.recursive(
    st.sampled_from(LEAVES).map(lambda make: make()),
    lambda inner: st.lists(inner, max_size=2) | st.builds(Holding, inner) | st.tuples(inner),
)


@given(st.tuples(st.integers(0, 3_000).map(nested), INNER))
def test_whatever_a_policy_holds_is_written_or_refused_in_one_line(held: Any) -> None:
    text = refusal = ""
    try:
        text = policy_state(Holding(held), ())
    except OasisError as error:
        refusal = str(error)
    assert bool(text) != bool(refusal)
    assert "\n" not in refusal
    if text:
        other = Holding()
        restore_policy(other, text, {}, SITE)
        assert type(other.held) is type(held)
