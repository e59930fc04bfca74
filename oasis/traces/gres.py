"""GPUs in lists of resources: Slurm's TRES and GRES, Kubernetes' names, and parts of GPUs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from oasis.traces.table import LARGEST, MISSING, NUMBER, MalformedError

USAGE = ("gpumem", "gpuutil")  # how much of a GPU was used: no GPUs
SHARED = ("shard", "mps")  # generic resources that are shares of a GPU, of how many is not said
# A type that is a slice, of MIG: a100_1g.5gb, 7g.80gb, mig-1g.10gb
SLICE = re.compile(r"(?i)(?:^|[_.-])(?:\d+g\.\d+gb|mig(?:$|[_.-]|\d))")
NAMED = re.compile(r"(?i)gpu|^gres[/:]|\b(?:shard|mps)[:=][0-9]")
GPU_NUMBER = "7696487"  # "gpu" as a number: what sacct prints where it does not know the resource
PER_NODE_PREFIX = "PER_NODE:"  # of ReqGRES, from Slurm 20.02 on
KUBERNETES = re.compile(r"[\w.-]+\.com/(gpu|mig-[\w.]+)")  # nvidia.com/gpu, amd.com/gpu
IN_WORDS = re.compile(r"(?i)(\d+)\s*x?\s*gpus?")  # 4 GPUs
BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")  # (IDX:0-1), (null)
# ``[gres/]name[:type][=count]`` in trackable lists, where what is no GRES has another prefix, or
# none and a count; ``[gres:]name[:type][:count]`` in generic ones.
PARTS = re.compile(r"(gres[/:])?([^:=/()\[\]]+)((?::[^:=()\[\]]*){0,2})(?:=(.*))?")
COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
POWER = {"": 0, "k": 1, "m": 2, "g": 3}  # of 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """Parsed list: GPUs, nodes (None: not given), other names; `is_share`: has parts of GPUs."""

    gpus: int
    nodes: int | None = None
    others: tuple[str, ...] = ()
    is_per_node: bool = False
    is_share: bool = False


def resources_of(text: str) -> Resources:
    """Parse a list of trackable (TRES) or generic resources (GRES), or of Kubernetes' names."""
    amounts: Counter[str] = Counter()
    others: list[str] = []
    bare = re.sub(r":\s+", "=", re.sub(r'[{}"]', "", text))  # without the signs of JSON and of YAML
    bare = KUBERNETES.sub(lambda match: f"gres/{match[1].replace('mig-', 'gpu:mig-')}", bare)
    for part in BRACKETS.sub("", bare).split(","):
        entry = part.strip().removeprefix(PER_NODE_PREFIX)
        if MISSING.fullmatch(entry) or ("/" in entry and not entry.startswith("gres/")):
            continue  # nothing, or a licence, a file system, ...
        match = PARTS.fullmatch(entry)
        if match is None or entry.startswith("PER_"):  # of a task, ...: of how many is not known
            raise MalformedError("resources not understood", f"{entry:.40}")
        name = "gpu" if match[2] == GPU_NUMBER else match[2].lower()
        is_generic = bool(match[1]) or match[4] is None or name == "gpu"
        kind, count = [part for part in match[3].split(":") if part], match[4]
        if count is None and kind and (len(kind) == 2 or COUNT.fullmatch(kind[0])):
            count = kind.pop()
        is_slice = SLICE.search(name) or (is_generic and kind and SLICE.search(kind[0]))
        # A name with gpu that is none of the known ones is in a form that is not known.
        if len(kind) > 1 if is_generic else "gpu" in name and not is_slice:
            raise MalformedError("resources not understood", f"{entry:.40}")
        if name == "node" and not is_generic:
            of = "nodes"
        elif is_slice or (name in SHARED and is_generic):
            of = "slices" if is_slice else "shares"
        elif name == "gpu":
            of = "typed" if kind else "whole"
        else:
            others += [f"gres/{name}"] if is_generic and name not in USAGE else []
            continue
        amount = COUNT.fullmatch("1" if count is None else count)
        # A count that is not understood becomes 0.5, which is refused like every other half.
        value = float(amount[1]) * 1024 ** POWER[amount[2].lower()] if amount else 0.5
        if value % 1:
            raise MalformedError("resources not understood", f"{entry:.40}")
        amounts[of] += int(value)
    # A list may name GPUs twice: gres/gpu=4 beside gres/gpu:a100=4 are the same four.
    # Entries without a type count all types; without such, the types are added.
    parts = amounts["slices"] + amounts["shares"]
    gpus = amounts["whole"] or amounts["typed"] + amounts["slices"] or min(amounts["shares"], 1)
    return Resources(gpus, amounts.get("nodes"), tuple(others), PER_NODE_PREFIX in text, parts > 0)


def listed_gpus(text: str) -> tuple[float, bool] | None:
    """Return a cell's (GPUs, whether parts of GPUs); None if it does not name GPUs clearly."""
    if NUMBER.fullmatch(text) and 0 <= float(text) <= LARGEST:
        return float(text), float(text) % 1 != 0
    if words := IN_WORDS.fullmatch(text):
        return float(words[1]), False
    if not (NAMED.search(text) or SLICE.search(text)):
        return None
    resources = resources_of(text)
    # What names GPUs in a way that is not known is no job without GPUs.
    is_odd = not resources.gpus and any("gpu" in name for name in resources.others)
    return None if is_odd else (float(resources.gpus), resources.is_share)
