"""Lists of resources as Slurm writes them: trackable ones (TRES) and generic ones (GRES)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oasis.traces.table import MalformedError

EMPTY = ("", "(null)", "N/A", "None", "none")
USAGE = ("gpumem", "gpuutil")  # how much of a GPU was used: no GPUs
PARTS = ("shard", "mps", "mig")  # generic resources that are parts of a GPU
SLICE = re.compile(r"(?i)(?:^|[_.-])\d+g\.\d+gb|^mig\b")  # of a type: MIG, such as a100_1g.5gb
COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
POWER = {"": 0, "k": 1, "m": 2, "g": 3}  # of 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What a list of resources says.

    Parameters
    ----------
    gpus : int
        GPUs it names.
    nodes : int or None
        The nodes of a trackable list (``node=2``); None if it does not say.
    others : tuple of str
        Generic resources that are not read as GPUs.
    """

    gpus: int
    nodes: int | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a list: ``gres/gpu:a100=4``, ``gpu:a100:4(IDX:0-3)``, ``gpu`` or ``cpu=4``."""

    text: str
    is_generic: bool
    name: str
    type: str | None
    count: str | None

    @property
    def number(self) -> int:
        """How many there are; an entry without a number is one."""
        if self.count is None:
            return 1
        found = COUNT.fullmatch(self.count)
        value = float(found[1]) * 1024 ** POWER[found[2].lower()] if found else 0.5
        if value != int(value):
            raise _not_understood(self.text)
        return int(value)


def resources_of(text: str) -> Resources:
    """Read a list of trackable resources (TRES) or of generic ones (GRES).

    The list is split at commas outside of brackets, and each entry is read as a whole. The GPUs are
    those of the entries without a type, which count all types, or else the sum over types.

    Raises
    ------
    MalformedError
        For an entry that may stand for GPUs and is not understood, and for parts of GPUs.

    Examples
    --------
    >>> resources_of("billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2")
    Resources(gpus=4, nodes=2, others=())
    >>> resources_of("gpu:a100:2(IDX:0,1),gpu:v100").gpus
    3
    >>> resources_of("license/abq_gpu=8,gres/nic=2")
    Resources(gpus=0, nodes=None, others=('gres/nic',))
    """
    whole: list[int] = []
    typed: list[int] = []
    nodes: int | None = None
    others: list[str] = []
    for entry in map(_entry, _split(text)):
        if entry is None:
            continue
        if entry.name == "node" and not entry.is_generic:
            nodes = entry.number
        elif not entry.is_generic or entry.name in USAGE:
            continue
        elif entry.name in PARTS or (entry.name == "gpu" and SLICE.search(entry.type or "")):
            if entry.number:
                raise MalformedError(f"a part of a GPU, not a whole one: {entry.text:.40}")
        elif entry.name == "gpu":
            (whole if entry.type is None else typed).append(entry.number)
        else:
            others.append(f"gres/{entry.name}")
    return Resources(sum(whole or typed), nodes, tuple(others))


def _split(text: str) -> Iterator[str]:
    """The entries between commas outside of brackets."""
    depth, begin = 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth <= 0:
            yield text[begin:position].strip()
            begin = position + 1
    yield text[begin:].strip()


def _entry(text: str) -> _Entry | None:
    """Read an entry; None if it says nothing.

    ``[gres/]name[:type][=count]`` in trackable lists, where what is no GRES has another prefix, or
    none and a count; ``[gres:]name[:type][:count]`` in generic ones.
    """
    if text in EMPTY:
        return None
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]", "", text).strip()
    prefix, slash, rest = bare.partition("/")
    if slash and prefix != "gres":
        return _Entry(text, False, bare, None, None)  # a licence, a file system, ...
    if not slash:
        rest = bare.removeprefix("gres:")
    head, equals, count = rest.partition("=")
    name, *more = head.split(":")
    name = name.lower()
    is_generic = bool(slash) or rest != bare or not equals or name == "gpu"
    if is_generic and (re.search(r"[()\[\]]", bare) or not name or len(more) + bool(equals) > 2):
        raise _not_understood(text)
    more = [part for part in more if part]  # a type that is (null) is none
    if equals:
        return _Entry(text, is_generic, name, more[0] if more else None, count)
    if len(more) == 2:
        return _Entry(text, is_generic, name, more[0], more[1])
    if more and not COUNT.fullmatch(more[0]):
        return _Entry(text, is_generic, name, more[0], None)
    return _Entry(text, is_generic, name, None, more[0] if more else None)


def _not_understood(text: str) -> MalformedError:
    return MalformedError(f"resources not understood: {text:.40}")
