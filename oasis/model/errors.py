"""Exceptions raised by the toolkit; everything a caller may want to catch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def describe(value: Any) -> str:
    """Return a short description of a wrong value for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe_or_read(value: Any, reader: str) -> str:
    """Describe a wrong value; of a path, also say which function `reader` reads that file."""
    is_path = isinstance(value, (str, os.PathLike))
    advice = f"; oasis.{reader}({os.fspath(value)!r}) reads one from that file" if is_path else ""
    return describe(value) + advice


class OasisError(Exception):
    """Base class of every error the toolkit raises on purpose.

    Attributes
    ----------
    field : str
        Path of the offending field, option or argument; empty where no single one is to blame.
    expected : str
        What was expected there; empty where the message says something else.
    got : str or None
        Description of the value that was found; None where there is none.
    sources : tuple of Path or str
        What the field was read from, the outermost first: files, and fields that name files.

    Examples
    --------
    >>> import oasis
    >>> try:
    ...     oasis.Server("w0", {"gpu": -1})
    ... except oasis.OasisError as error:
    ...     print(error)
    capacity.gpu: expected a finite number >= 0, got -1
    """

    field: str = ""
    expected: str = ""
    got: str | None = None
    sources: tuple[Path | str, ...] = ()

    def __str__(self) -> str:
        return ": ".join((*map(str, self.sources), super().__str__()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).__new__, (type(self), *self.args), self.__dict__  # without `__init__`


_NOTHING: Any = object()  # for `got`: None is a value that may be found


class InputError(OasisError, ValueError):
    """Bad input: an argument, an option, or a field of a file.

    The command line prints it as one line and exits with code 2. The message is made of the
    attributes: callers that know more about the place change these, and never parse the text.

    Parameters
    ----------
    field : str
        Path of what is wrong, such as ``jobs[3].worker.bandwidth_gbps`` or ``discount``.
    expected : str
        Description of the expected value.
    got : object, optional
        The value that was found; the attribute has its description.
    hint : str
        Advice to put behind the message.

    Examples
    --------
    >>> import oasis
    >>> error = oasis.InputError("discount", "expected a number <= 1", 1.5)
    >>> error.field, error.expected, error.got
    ('discount', 'expected a number <= 1', '1.5')
    >>> print(error)
    discount: expected a number <= 1, got 1.5
    """

    def __init__(
        self,
        field: str,
        expected: str,
        got: Any = _NOTHING,
        *,
        hint: str = "",
    ) -> None:
        super().__init__(expected)
        self.field = field
        self.expected = expected
        self.got = None if got is _NOTHING else describe(got)
        self.hint = hint

    def within(self, prefix: str) -> InputError:
        """Put `prefix` before the path of the field, as that of its parent; return the error."""
        if not self.sources:
            self.field = nested(prefix, self.field)
        elif isinstance(first := self.sources[0], str):
            self.sources = (nested(prefix, first), *self.sources[1:])
        else:  # a file, which the field names
            self.sources = (prefix, *self.sources)
        return self

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace the field by its new name in `names`, such as the flag that sets an argument."""
        if not self.sources:
            self.field = names.get(self.field.partition("[")[0], self.field)
        elif isinstance(self.sources[0], str):  # the argument names a file, where the field is
            self.sources = (names.get(self.sources[0], self.sources[0]), *self.sources[1:])

    @property
    def detail(self) -> str:
        """The message without field and file: what was expected and what was found."""
        return f"{self.expected}{'' if self.got is None else f', got {self.got}'}{self.hint}"

    def __str__(self) -> str:
        parts = (*map(str, self.sources), self.field, self.detail)
        return ": ".join(part for part in parts if part)


class InstanceError(InputError):
    """Bad problem data.

    Parameters
    ----------
    field, expected, got, hint
        As for `InputError`.

    Examples
    --------
    >>> import oasis
    >>> try:
    ...     oasis.Server("w0", {"gpu": -1})
    ... except oasis.InstanceError as error:
    ...     print(error.field, "-", error.expected, "-", error.got)
    capacity.gpu - expected a finite number >= 0 - -1
    """


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
        where = _places(job=job, slot=slot, server=server)
        super().__init__(f"{constraint}{where}: {detail}")
        self.constraint = constraint
        self.detail = detail
        self.job = job
        self.slot = slot
        self.server = server


class PolicyError(OasisError):
    """A policy asked for something impossible, or its own code failed.

    Parameters
    ----------
    policy : str
        Name of the policy.
    detail : str
        The fault in words.
    job, server, resource : str, optional
        Place of the violation.
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
        where = _places(job=job, server=server, resource=resource)
        when = "" if time is None else f" at time {time:g}"
        super().__init__(f"policy {policy}{where}: {detail}{when}")
        self.policy = policy
        self.detail = detail
        self.job = job
        self.server = server
        self.resource = resource
        self.time = time

    def places(self) -> dict[str, Any]:
        """Return job, server, resource and time as keyword arguments for another `PolicyError`."""
        return {name: getattr(self, name) for name in ("job", "server", "resource", "time")}


class SolverError(OasisError):
    """The solver failed, or claimed something that a verified schedule refutes.

    Examples
    --------
    >>> import oasis
    >>> issubclass(oasis.SolverError, oasis.OasisError)
    True
    """


def _places(**places: object) -> str:
    shown = [f"{name} {value}" for name, value in places.items() if value not in (None, "")]
    return f" [{', '.join(shown)}]" if shown else ""


def nested(field: str, inner: str) -> str:
    """Return the path of `inner` in `field`, such as ``a.b`` or ``a[0]``; either may be empty."""
    return f"{field}{'.' if field and inner and not inner.startswith('[') else ''}{inner}"


@contextmanager
def readable(field: str) -> Iterator[None]:
    """Turn an `OSError` of the block into an `InstanceError` at `field` that names the file."""
    try:
        yield
    except OSError as error:
        with located_at(field), located_at(source=error.filename or ""):
            raise InstanceError("", error.strerror or str(error)) from None


class located_at:  # noqa: N801 (used like a function; a generator would take three times as long)
    """Put `prefix` before the field of an error in the block, and the file `source` before that."""

    __slots__ = ("_prefix", "_source")

    def __init__(self, prefix: str = "", source: str | os.PathLike[str] = "") -> None:
        self._prefix, self._source = prefix, source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._prefix and isinstance(error, InputError):
            error.within(self._prefix)
        if self._source and isinstance(error, OasisError):
            error.sources = (Path(self._source), *error.sources)
