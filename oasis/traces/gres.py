"""GPUs in lists of resources: Slurm's TRES and GRES, Kubernetes' names, and parts of GPUs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from oasis.traces.table import MalformedError

EMPTY = ("", "(null)", "N/A", "None", "none")
USAGE = ("gpumem", "gpuutil")  # how much of a GPU was used: no GPUs
SHARED = ("shard", "mps")  # generic resources that are shares of a GPU, of how many is not said
# A type that is a slice, of MIG: a100_1g.5gb, 7g.80gb, mig-1g.10gb
SLICE = re.compile(r"(?i)(?:^|[_.-])(?:\d+g\.\d+gb|mig(?:$|[_.-]|\d))")
NAMED = re.compile(r"(?i)gpu|^gres[/:]|\b(?:shard|mps)[:=][0-9]")
GPU_NUMBER = "7696487"  # "gpu" as a number: what sacct prints where it does not know the resource
PER_NODE_PREFIX = "PER_NODE:"  # of ReqGRES, from Slurm 20.02 on
KUBERNETES = re.compile(r"[\w.-]+\.com/(gpu|mig-[\w.]+)")  # nvidia.com/gpu, amd.com/gpu
IN_WORDS = re.compile(r"(?i)(\d+)\s*x?\s*gpus?")  # 4 GPUs
COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
POWER = {"": 0, "k": 1, "m": 2, "g": 3}  # of 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What a list names: GPUs, nodes (None: it does not say), and resources that are no GPUs.

    A list may say itself that it is of each node (``PER_NODE:gpu:2``). `is_share`: parts of GPUs
    count among its GPUs, each slice as one, and all shares together as one.
    """

    gpus: int
    nodes: int | None = None
    others: tuple[str, ...] = ()
    is_per_node: bool = False
    is_share: bool = False


def resources_of(text: str) -> Resources:
    """Read a list of trackable resources (TRES), of generic ones (GRES), or of Kubernetes' names.

    The list is split at commas outside of brackets, and each entry is read as a whole. The GPUs are
    those of the entries without a type, which count all types, otherwise the sum over types.
    """
    # A list may name GPUs twice: gres/gpu=4 beside gres/gpu:a100=4 are the same four.
    whole: list[int] = []
    typed: list[int] = []
    slices = shares = 0
    nodes: int | None = None
    others: list[str] = []
    for entry in filter(lambda each: each not in EMPTY, _entries(_bare(text))):
        name, kind, count, is_generic = _parts(entry)
        if name == "node" and not is_generic:
            nodes = _number(entry, count)
        elif SLICE.search(name) or (is_generic and SLICE.search(kind)):
            slices += _number(entry, count)
        elif not is_generic and "gpu" in name and "/" not in entry:  # in a form that is not known
            raise _not_understood(text)
        elif not is_generic or name in USAGE:
            continue
        elif name in SHARED:
            shares += _number(entry, count)
        elif name == "gpu":
            (typed if kind else whole).append(_number(entry, count))
        else:
            others.append(f"gres/{name}")
    gpus = sum(whole) or sum(typed) + slices or min(shares, 1)
    is_share = slices + shares > 0
    return Resources(gpus, nodes, tuple(others), PER_NODE_PREFIX in text, is_share)


def names_gpus(text: str) -> bool:
    """Whether a cell may be a list with GPUs, or with parts of them."""
    return bool(NAMED.search(text) or SLICE.search(text))


def _bare(text: str) -> str:
    """A list without the signs of JSON and of YAML: ``{"nvidia.com/gpu": "4"}``, ``gpu: 2``."""
    if text.startswith("{"):
        try:
            text = ",".join(f"{name}={amount}" for name, amount in json.loads(text).items())
        except ValueError:
            raise _not_understood(text) from None
    text = re.sub(r":\s+", "=", text)
    return KUBERNETES.sub(lambda found: f"gres/{found[1].replace('mig-', 'gpu:mig-')}", text)


def _entries(text: str) -> Iterator[str]:
    """The entries between commas outside of brackets."""
    depth, begin = 0, 0
    for position, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth <= 0:
            yield text[begin:position].strip()
            begin = position + 1
    yield text[begin:].strip()


def _parts(text: str) -> tuple[str, str, str | None, bool]:
    """Name, type and count of an entry, and whether it is a generic resource.

    ``[gres/]name[:type][=count]`` in trackable lists, where what is no GRES has another prefix, or
    none and a count; ``[gres:]name[:type][:count]`` in generic ones.
    """
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]", "", text).strip().removeprefix(PER_NODE_PREFIX)
    prefix, slash, rest = bare.partition("/")
    if slash and prefix != "gres":
        return bare, "", None, False  # a licence, a file system, ...
    if bare.startswith("PER_"):  # of a task, a socket, ...: of how many is not known
        raise _not_understood(text)
    rest = rest if slash else bare.removeprefix("gres:")
    head, equals, count = rest.partition("=")
    name, *more = head.split(":")
    name = "gpu" if name == GPU_NUMBER else name.lower()
    is_generic = bool(slash) or rest != bare or not equals or name == "gpu"
    if is_generic and (re.search(r"[()\[\]]", bare) or not name or len(more) + bool(equals) > 2):
        raise _not_understood(text)
    more = [part for part in more if part]  # a type that is (null) is none
    if not equals and more and (len(more) == 2 or COUNT.fullmatch(more[0])):
        return name, more[0] if len(more) == 2 else "", more[-1], is_generic
    return name, more[0] if more else "", count if equals else None, is_generic


def _number(text: str, count: str | None) -> int:
    """Amount of an entry, which is 1 if it says none."""
    if count is None:
        return 1
    found = COUNT.fullmatch(count)
    # A count that is not understood becomes 0.5, which is refused like every other half.
    value = float(found[1]) * 1024 ** POWER[found[2].lower()] if found else 0.5
    if value != int(value):
        raise _not_understood(text)
    return int(value)


def _not_understood(text: str) -> MalformedError:
    return MalformedError("resources not understood", f"{text:.40}")
