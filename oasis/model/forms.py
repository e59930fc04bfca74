"""Labels of machines, requirements of tasks, and the forms in which a job may run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from oasis.model.errors import InstanceError, located_at
from oasis.model.records import AMOUNTS, Amount, ListOf, Number, Record, TableOf, Text, Whole, entry
from oasis.model.resources import Table
from oasis.model.validation import LARGEST_AMOUNT, text

VALUES, SPEED = ListOf(Text(), "expected at least one value"), Amount(above=True)
SIZE = Number(maximum=LARGEST_AMOUNT)


class Labels(Table[str]):
    """Labels of a machine: what kind it is, and where it stands."""

    contents = "labels"
    checked = staticmethod(text)


class Requirement(Table[tuple[str, ...]]):
    """Labels that tasks require of a machine: for each label, the accepted values."""

    contents = "lists of values by label"
    checked = staticmethod(VALUES.check)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Return whether a machine has an accepted value for each of these labels."""
        return all(labels.get(name) in values for name, values in self._entries.items())

    def unmet_by(self, machines: Sequence[Mapping[str, str]]) -> str | None:
        """Return a label that no machine satisfies, else the first one; None if one is admitted."""
        if any(self.admits(labels) for labels in machines):
            return None
        for name, values in self._entries.items():
            if not any(labels.get(name) in values for labels in machines):
                return name
        return next(iter(self._entries), None)

    def __str__(self) -> str:
        """Return a text for messages, such as ``gpu is a100 or h100, zone is b``."""
        return ", ".join(f"{name} is {' or '.join(each)}" for name, each in self._entries.items())


class Rates(Table[float]):
    """Speeds of a job, in multiples of its own, by value of a label."""

    contents = "speeds by value"
    checked = staticmethod(SPEED.check)


NO_LABELS, ANY_MACHINE = Labels({}), Requirement({})
NOT_ADMITTED = "no machine admits it"  # why a job is rejected; what label is unmet stands behind it


LABELS = TableOf(Labels, Text())
REQUIREMENT = TableOf(Requirement, VALUES)


@dataclass(frozen=True, slots=True)
class Form(Record):
    """One way to run a job: values in place of the job's own; None keeps the job's value.

    Parameters
    ----------
    worker, ps : ResourceVector or mapping, optional
        Demands of one worker and of one parameter server.
    chunks, minibatches, minibatch_time, gradient_mb, min_workers : optional
        As in `Job`.
    requires, ps_requires : mapping of str to list of str, optional
        Labels of the machines that its workers, and its parameter servers, may run on.

    Examples
    --------
    >>> import oasis
    >>> oasis.Form(minibatch_time=0.01, requires={"gpu": ["h100"]}).requires["gpu"]
    ('h100',)
    """

    worker: Mapping[str, float] | None = entry(AMOUNTS, "w_i of this form.", None)
    ps: Mapping[str, float] | None = entry(AMOUNTS, "s_i of this form.", None)
    chunks: int | None = entry(Whole(1), "N_i of this form.", None)
    minibatches: int | None = entry(Whole(1), "M_i of this form.", None)
    minibatch_time: float | None = entry(SIZE, "tau_i of this form.", None)
    gradient_mb: float | None = entry(SIZE, "e_i of this form.", None)
    min_workers: int | None = entry(Whole(1), "Fewest workers of this form.", None)
    requires: Mapping[str, Sequence[str]] | None = entry(
        REQUIREMENT, "Machines for the workers of this form.", None
    )
    ps_requires: Mapping[str, Sequence[str]] | None = entry(
        REQUIREMENT, "Machines for the parameter servers of this form.", None
    )


@dataclass(frozen=True, slots=True)
class Speeds(Record):
    """Forms that differ in speed alone, one for each value of a label.

    Parameters
    ----------
    label : str
        The label of machines that tells their speed.
    values : mapping of str to float
        By its value, how many times as fast as the job's own `minibatch_time` says; > 0.

    Examples
    --------
    >>> import oasis
    >>> oasis.Speeds("gpu", {"a100": 1.0, "h100": 2.2}).values["h100"]
    2.2
    """

    label: str = entry(Text(), "The label of machines that tells their speed.")
    values: Mapping[str, float] = entry(
        TableOf(Rates, SPEED, filled="expected at least one speed"),
        "How many times as fast, by value of the label.",
    )


class InForms:
    """Base of job dataclasses with `forms` or `speeds`: gives the job in each of its forms."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    PACED: ClassVar[tuple[str, ...]]  # the fields that `speeds` divide
    forms: tuple[Any, ...]
    speeds: Speeds | None
    requires: Mapping[str, Sequence[str]]
    ps_requires: Mapping[str, Sequence[str]]
    _in_forms: tuple[Self, ...]

    @property
    def in_forms(self) -> tuple[Self, ...]:
        """A copy of the job for each of its forms; the job alone if it has no forms."""
        return self._in_forms or (self,)

    def in_form(self, form: int) -> Self:
        """Return the copy of the job for the form with this index; the job if it has no forms."""
        return self._in_forms[form] if self._in_forms else self

    def located_forms(self) -> Iterator[tuple[str, Self]]:
        """Yield, for each form, its path in an instance file and the copy of the job for it."""
        yield from zip([path for path, _ in self._changes()] or [""], self.in_forms, strict=True)

    def _make_forms(self, **alone: Any) -> bool:
        """Make the copies for `in_forms`, with the fields `alone`; return whether there are any."""
        forms = []
        for path, changes in self._changes():
            with located_at(path):
                forms.append(replace(self, forms=(), speeds=None, **alone, **changes))
        if forms:
            object.__setattr__(self, "_in_forms", tuple(forms))
        return bool(forms)

    def _changes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield, for each form, its path in an instance file and the fields that it changes."""
        if self.speeds is None:
            for k, form in enumerate(self.forms):
                values = {one.name: getattr(form, one.name) for one in fields(form)}
                yield f"forms[{k}]", {n: value for n, value in values.items() if value is not None}
            return
        if self.forms:
            raise InstanceError("speeds", "expected either speeds or forms, not both")
        label = self.speeds.label
        for value, speed in self.speeds.values.items():
            # The machines of a speed are further limited by what the job requires anyway.
            known = self.requires.get(label, (value,))
            if value not in known:
                expected = f"expected one of the values that requires.{label} admits"
                raise InstanceError(f"speeds.values.{value}", expected)
            paced = {name: getattr(self, name) / speed for name in self.PACED}
            requires = {**self.requires, label: (value,)}
            yield f"speeds.values.{value}", {"requires": requires, **paced}
