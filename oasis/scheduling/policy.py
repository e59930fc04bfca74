"""The protocol of policies: the view that they receive, the plan that they return, abilities."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, cast

from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.model.summary import called
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.site import Site
from oasis.scheduling.view import View

__all__ = ["BasePolicy", "Plan", "Policy", "View"]


@dataclass(slots=True)
class Plan:
    """Answer of a policy: what changes; jobs that it does not name keep what they hold.

    Parameters
    ----------
    changes : dict of int to Allocation
        By `PolicyJob.index`; `NOTHING` pauses a job, a job that is not named keeps what it holds.
    rejected : dict of int to str
        Jobs that will never run (any more), and why.
    wake_at : float or None
        Time at which the policy is to be called again at the latest; on a slotted workload it is
        rounded up to a whole slot. Each answer replaces the time that the last one asked for.

    Examples
    --------
    >>> Plan(changes={0: Allocation(((2, 4),))}, wake_at=60.0).rejected
    {}
    """

    changes: dict[int, Allocation] = field(default_factory=dict)
    rejected: dict[int, str] = field(default_factory=dict)
    wake_at: float | None = None


class Policy(Protocol):
    """A scheduler, driven by the simulator or by an adapter to a cluster.

    `told_remaining` declares that it needs to be told how much work jobs have, in all and left. A
    simulation knows that, a cluster only what owners say. A policy that does not declare it never
    sees it: `View.remaining` and what says it of a job (`UntoldJob`) raise `PolicyError`. It
    may be left out, which is the same as False.

    It is called once for each instant at which something happened: jobs finished or arrived, a
    server was lost or returned, its timer went off, or, if `slotted`, a slot began. A policy may
    also have a mapping `report`, plain data on its own run, which then is that of the `Run`, and a
    method ``state_of(job)``, its own word, a string, for the state of an unfinished job since the
    last call: on a cluster the object of the job shows it where its phase does not say the same.
    `BasePolicy` has defaults of all attributes.

    Examples
    --------
    A policy that rejects every job:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> class Closed:
    ...     name, slotted, told_remaining, parameters = "closed", False, False, {}
    ...     def reset(self, site):
    ...         pass
    ...     def decide(self, view):
    ...         return Plan(rejected={job.index: "we are closed" for job in view.arrived})
    >>> replay(rigid_workload([PlainJob("a", 0.0, 60.0, 4)], 1, 8), Closed()).jobs[0].refusal
    'we are closed'
    """

    name: str
    slotted: bool
    told_remaining: bool

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Options of the policy, by name, as plain data."""
        ...

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`."""
        ...

    def decide(self, view: View) -> Plan:
        """Return the changes of allocations, and rejections, from now on."""
        ...


class _ClassName:
    """Default of `BasePolicy.name`; a class or an object may set another name."""

    def __get__(self, policy: object, owner: type) -> str:
        return owner.__name__


class BasePolicy:
    """The attributes that every `Policy` needs, with defaults; `decide` is left to the subclass.

    The name is that of the class; everything else is no unless a subclass says otherwise.

    Examples
    --------
    A policy that rejects large jobs; its option is recorded without a word about it:

    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> class Small(BasePolicy):
    ...     def __init__(self, most=4):
    ...         self.most = most
    ...     def decide(self, view):
    ...         large = [job for job in view.arrived if job.worker[0][1] > self.most]
    ...         return Plan(rejected={job.index: "too large" for job in large})
    >>> outcome = replay(rigid_workload([PlainJob("a", 0.0, 60.0, 4)], 1, 8), Small(most=2))
    >>> outcome.policy, outcome.parameters, outcome.jobs[0].refusal
    ('Small', {'most': 2}, 'too large')
    """

    name: str = cast(str, _ClassName())  # what results call it; the name of the class
    slotted: bool = False  # whether it is called at each slot, also if nothing happened
    told_remaining: bool = False  # whether it uses how much work jobs have
    prefers_long: bool = False  # whether more work left brings a job more
    # With one of these two, a replay runs it only where it is named.
    needs: str = ""  # what it goes by that traces lack, in words, such as deadlines
    is_slow: bool = False  # whether many jobs take it long
    knows_forms: bool = False  # whether it chooses the form in which a job of several runs
    keeps_run_times: bool = False  # whether it changes no job before `View.kept_until`

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        """Make the object, and keep what its constructor is given for `parameters`."""
        policy = super().__new__(cls)
        if cls.parameters is BasePolicy.parameters:
            policy.__dict__["_given"] = _arguments(cls, arguments, named)
        return policy

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Arguments of the constructor, defaults included.

        They are plain data for results. A value that is none is told by its name or that of its
        class; a subclass that needs more overrides this.
        """
        return {name: _plain(value) for name, value in self.__dict__.get("_given", {}).items()}

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`."""
        self.site = site

    def __repr__(self) -> str:
        """Return a call that makes such a policy, with the options that are not the defaults."""
        own = self.parameters
        if not isinstance(own, Mapping):  # a mistake of a subclass, which `check_interface` names
            own = {}
        chosen = {
            name: own[name]
            for name, option in inspect.signature(type(self)).parameters.items()
            if name in own and own[name] != _plain(option.default)
        }
        return called(self, chosen)


def _arguments(source: type, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor by name, with defaults; empty for a wrong call."""
    try:
        # partial: copy and pickle make objects without arguments and then restore all attributes
        bound = inspect.signature(source.__init__).bind_partial(None, *positional, **named)  # type: ignore[misc]
    except (TypeError, ValueError):
        return {}
    bound.apply_defaults()
    parameters: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:  # the first is the object itself
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            parameters |= value
        elif kind is not inspect.Parameter.VAR_POSITIONAL or value:
            parameters[name] = value
    return parameters


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return getattr(value, "__qualname__", type(value).__qualname__)


def wants(policy: object, attribute: str) -> bool:
    """Return whether this flag of `BasePolicy`, False by default, is true for `policy`."""
    return bool(getattr(policy, attribute, False))


def left_out(policy: object) -> str:
    """Return why a replay leaves `policy` out unless it is named; empty if it does not."""
    needs = getattr(policy, "needs", "")
    return f"need {needs}" if needs else "slow with many jobs" * wants(policy, "is_slow")


def state_of(policy: Policy, job: PolicyJob) -> str | None:
    """Return what `policy` calls the state of an unfinished job; None without `state_of`."""
    own = getattr(policy, "state_of", None)
    return None if own is None else own(job)


class Planner(BasePolicy):
    """Base of policies that plan whole schedules; with `lookahead`, on a horizon that rolls."""

    told_remaining = True
    plans_in_model = True
    knows_forms = True
    lookahead: int | None = None  # slots that the plan reaches ahead; None if it does not roll
    bounds: Any = None  # U and L (23)-(26), which results record
    late: Set[int] = frozenset()  # jobs whose promise was broken by the last decision
    withdrawn: Sequence[int] = ()  # jobs that were withdrawn and are not taken in yet
    rounds_given: int | None = None  # exact number of rounds of the search in the next decisions
    _calendar = EVER_OPEN
    _decided: Mapping[int, Decision] = MappingProxyType({})

    @property
    def rounds_done(self) -> int:
        """Rounds of the search in the last decision; 0 without a search."""
        return 0

    @property
    def cut_short(self) -> int:
        """Number of decisions that a limit in seconds ended before all rounds were done."""
        return 0

    def withdraw(self, job: PolicyJob) -> None:
        """Record that the owner has cancelled `job`: it leaves, though its work is not done."""
        self.withdrawn = [*self.withdrawn, job.index]

    def plan_around(self, calendar: Calendar) -> None:
        """Set the maintenance windows in which later decisions place no task."""
        self._calendar = calendar

    def last_decisions(self) -> Mapping[int, Decision]:
        """Return the decisions on the jobs that arrived last, by index of the job."""
        return self._decided

    def promised(self, job: PolicyJob) -> int | None:
        """Return the slot by which `job` is to be complete; None if nothing was promised."""
        return None

    def planned(self) -> Mapping[str, tuple[Any, float]]:
        """Return schedule (or None) and planned utility of live jobs, by id; {} by default."""
        return {}

    def ahead(self, slots: int) -> Mapping[int, Sequence[tuple[int, Allocation]]]:
        """Return the planned (slot, allocation) pairs in the next `slots` slots, by job index."""
        return {}

    def foresee(self, job: Job, now: int) -> Any:
        """Return a forecast for `job` arriving in slot `now`; None: the caller tries on a copy."""
        return None

    def making(self) -> dict[str, Any] | None:
        """Return plain data from which the class can build an equal policy; None if it cannot."""
        return None
