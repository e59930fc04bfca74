"""Exceptions raised by the toolkit; everything a caller may want to catch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any


class OasisError(Exception):
    """Base class of every error the toolkit raises on purpose.

    Examples
    --------
    >>> import oasis
    >>> try:
    ...     oasis.Server("w0", {"gpu": -1})
    ... except oasis.OasisError as error:
    ...     print(error)
    capacity.gpu: expected a finite number >= 0, got -1
    """


class InstanceError(OasisError, ValueError):
    """Bad problem data.

    Parameters
    ----------
    path : str
        The offending field, such as ``jobs[3].worker.bandwidth_gbps``.
    expected : str
        What was expected there, and what was found.

    Examples
    --------
    >>> import oasis
    >>> try:
    ...     oasis.Server("w0", {"gpu": -1})
    ... except oasis.InstanceError as error:
    ...     print(error.path, "-", error.expected)
    capacity.gpu - expected a finite number >= 0, got -1
    """

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path}: {expected}" if path else expected)
        self.path = path
        self.expected = expected

    def __reduce__(self) -> tuple[type[InstanceError], tuple[str, str]]:
        return type(self), (self.path, self.expected)


class VerificationError(OasisError):
    """A schedule breaks a constraint of the model.

    Parameters
    ----------
    constraint : str
        Equation number of the paper, such as ``"(4)"``, and its meaning.
    detail : str
        The two sides of the violated inequality.
    job : str, optional
        Identifier of the job.
    slot : int, optional
        Slot, counted from 0.
    server : str, optional
        Identifier of the server.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> early = oasis.Schedule("j0", workers=[[0, 0, 1]], ps=[])  # the job arrives in slot 4
    >>> try:
    ...     oasis.verify(instance, {"j0": early})
    ... except oasis.VerificationError as error:
    ...     print(error)
    (9) workers after arrival [job j0, slot 0, server w0]: arrives in slot 4
    """

    def __init__(
        self,
        constraint: str,
        detail: str,
        *,
        job: str | None = None,
        slot: int | None = None,
        server: str | None = None,
    ) -> None:
        places = [("job", job), ("slot", slot), ("server", server)]
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        super().__init__(f"{constraint}" + (f" [{where}]" if where else "") + f": {detail}")
        self.constraint = constraint
        self.detail = detail
        self.job = job
        self.slot = slot
        self.server = server

    def __reduce__(self) -> tuple[Any, ...]:
        places = {"job": self.job, "slot": self.slot, "server": self.server}
        return partial(type(self), **places), (self.constraint, self.detail)  # type: ignore[arg-type]


class PolicyError(OasisError):
    """A policy asked for something that cannot run, or its own code failed.

    Parameters
    ----------
    policy : str
        Name of the policy.
    detail : str
        What is wrong.
    job, server, resource : str, optional
        Where.
    time : float, optional
        When: slots on an instance, seconds in a replay.

    Examples
    --------
    >>> import oasis
    >>> print(oasis.PolicyError("mine", "is down", job="j0", server="w0", time=3.0))
    policy mine [job j0, server w0]: is down at time 3
    """

    def __init__(
        self,
        policy: str,
        detail: str,
        *,
        job: str | None = None,
        server: str | None = None,
        resource: str | None = None,
        time: float | None = None,
    ) -> None:
        places = [("job", job), ("server", server), ("resource", resource)]
        where = ", ".join(f"{name} {value}" for name, value in places if value)
        when = "" if time is None else f" at time {time:g}"
        found = f"policy {policy}" + (f" [{where}]" if where else "") + f": {detail}{when}"
        super().__init__(found)
        self.policy = policy
        self.detail = detail
        self.job = job
        self.server = server
        self.resource = resource
        self.time = time

    def places(self) -> dict[str, Any]:
        """Where and when, as keyword arguments for another error about the same."""
        return {
            "job": self.job,
            "server": self.server,
            "resource": self.resource,
            "time": self.time,
        }

    def __reduce__(self) -> tuple[Callable[..., PolicyError], tuple[str, str]]:
        return partial(type(self), **self.places()), (self.policy, self.detail)


class SolverError(OasisError):
    """The solver failed, or claimed something that a verified schedule refutes.

    Examples
    --------
    >>> import oasis
    >>> issubclass(oasis.SolverError, oasis.OasisError)
    True
    """


class _LocatedAt:
    """The context of `located_at`; a generator would take three times as long, for every field."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InstanceError):
            separator = "" if not error.path or error.path.startswith("[") else "."
            path = f"{self._prefix}{separator}{error.path}"
            raise InstanceError(path, error.expected) from None


def located_at(prefix: str) -> AbstractContextManager[None]:
    """Prepend `prefix` to the field path of any `InstanceError` raised inside."""
    return _LocatedAt(prefix)
