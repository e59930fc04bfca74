"""The grid of a sweep (docs/sweeps): TOML in, cells out, in the grid's order."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import oasis
from experiments.evaluation.policies import SEED, PolicyEntry, entry_of, having, make_policy
from experiments.evaluation.provenance import instance_digest
from experiments.options import GenerateOptions, Option, check_known, options_of
from experiments.sweep.tasks import TASKS, Case, CellTask, Options, fingerprint
from oasis.model.choices import choice, did_you_mean
from oasis.model.document import entry, list_of
from oasis.model.errors import InputError, located_at, readable
from oasis.model.file_kinds import read_content
from oasis.model.instance import Instance
from oasis.model.validation import integer
from oasis.simulator import Policy
from oasis.version import __version__
from oasis.workloads.generator import read_counts, resolve

Item = TypeVar("Item")
# Seeds are written out as a list: a typo must not fill the memory.
MOST_SEEDS = 1_000_000
FILE = Option("file", str, "")
DRAWN = options_of(GenerateOptions, without=(SEED,))


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """A grid of instances, policies and seeds, and what to do with each cell.

    Parameters
    ----------
    instances : list of dict
        The values of each axis by its key; the product of the axes are the instances. The key is
        ``file`` alone, or each is a field of `GenerateOptions` but for the seed, which is the
        cell's.
    policies : list of tuple
        Name and all options of each policy, as plain data. Only a seed that is not given is left
        out: it is that of the cell.
    seeds : list of int
        Draw the instances, and the fixed counts of policies that have them.
    task : mapping
        ``name`` of a task, and its options.
    """

    instances: list[dict[str, list[Any]]]
    policies: list[tuple[str, dict[str, Any]]]
    seeds: list[int]
    task: Mapping[str, Any] = field(default_factory=lambda: {"name": "run"})


def sweep_config(data: Mapping[str, Any]) -> SweepConfig:
    """Make a configuration from plain data, as read from the TOML of docs/sweeps.

    A list of values is an axis of a grid. Errors name the key and what was expected there.

    Raises
    ------
    OasisError
        With one line.

    Examples
    --------
    >>> config = sweep_config({
    ...     "instances": [{"preset": "testbed", "jobs": [6, 12]}],
    ...     "policies": [{"name": "las", "line": ["strict", "fit"]}],
    ... })
    >>> [point["line"] for _, point in config.policies]
    ['strict', 'fit']
    """
    check_known(data, ("instances", "policies", "seeds", "task"))
    instances = entry(data, "instances", _tables(_axes))
    policies = entry(data, "policies", _tables(_policies))
    return SweepConfig(
        instances,
        [point for points in policies for point in points],
        entry({"seeds": [0]} | dict(data), "seeds", _seeds),
        entry({"task": {"name": "run"}} | dict(data), "task", _table),
    )


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError("", "expected a table", value)
    return value


def _tables(read: Callable[[Mapping[str, Any]], Item]) -> Callable[[Any], list[Item]]:
    """Return a reader of a list of at least one table, each read by `read`."""
    return lambda value: list(list_of(lambda row: read(_table(row)))(_not_empty(value)))


def _not_empty(values: Sequence[Item]) -> Sequence[Item]:
    if isinstance(values, list | tuple) and not values:
        raise InputError("", "expected at least one value, got none")
    return values


def _axis(option: Option, value: Any) -> list[Any]:
    """Check the values of an axis: a list, or a single value; a row of numbers is one value."""
    if not isinstance(value, list) or (
        option.is_row and not any(isinstance(part, list) for part in value)
    ):
        return [option.check(value)]
    return list(list_of(option.check)(_not_empty(value)))


def _axes(table: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Check an entry of ``instances`` and return its axes, in the order of the options."""
    options = {"file": FILE} | DRAWN
    check_known(table, options)
    arguments = sorted(set(table) - {"file"})
    if "file" in table and arguments:
        raise InputError("", f"expected file alone, got {arguments[0]} beside it")
    axes = {}
    for name, option in options.items():
        if table.get(name) is not None:
            with located_at(name):
                values = _axis(option, table[name])
                axes[name] = [list(v) if isinstance(v, tuple) else v for v in values]
    return axes


def _policies(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return name and options of each policy in an entry; the last axis varies fastest."""
    names = entry(table, "name", lambda value: _axis(Option("name", str, ""), value))
    with located_at("name"):
        entries = [entry_of(name) for name in names]
    axes = {name: value for name, value in table.items() if name != "name"}
    return [(one.name, point) for one in entries for point in _policy_points(one, axes)]


def _policy_points(entry: PolicyEntry, axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options of each point of an entry's axes; raise an error for unknown ones."""
    for option in axes:
        if option not in entry.options:
            names = " or ".join(map(repr, having(option)))
            expected = f"expected {option} with name = {names} alone, got {entry.name}"
            if not names:
                expected = f"unknown key {option!r}; {entry.name} has {', '.join(entry.options)}"
                expected += did_you_mean(option, entry.options)
            raise InputError("", expected)
    choices = {}
    # In the order of the policy's options, so that the order of keys in a file changes no row.
    for name in (name for name in entry.options if name in axes):
        with located_at(name):
            choices[name] = _axis(entry.options[name], axes[name])
    points = []
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        point = entry.resolve(chosen, named=False)
        if SEED not in chosen:
            point.pop(SEED, None)
        points.append(point)
    return points


def _seeds(value: Any) -> list[int]:
    """Read seeds from a list or a count: ``5`` and ``{first = 0, count = 5}`` are 0 to 4."""
    if isinstance(value, list):
        return list(list_of(lambda seed: integer(seed, ""))(_not_empty(value)))
    table = {"first": 0, **(value if isinstance(value, Mapping) else {"count": value})}
    try:
        check_known(table, ("first", "count"))
        first = integer(table["first"], "")
        count = integer(table.get("count"), "", minimum=1, maximum=MOST_SEEDS)
    except InputError:
        expected = f"expected how many seeds, 1..{MOST_SEEDS}, {{first = 0, count = 5}}, or a list"
        raise InputError("", f"{expected} of the seeds themselves, such as [0, 7]", value) from None
    return list(range(first, first + count))


def read_config(path: Path) -> SweepConfig:
    """Read the configuration of a sweep from a TOML file; errors name the wrong key."""
    content = read_content(path)
    try:
        return sweep_config(tomllib.loads(content.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        expected = "expected the configuration of a sweep, which is TOML"
        raise InputError("", f"{expected}: {error}") from None


@dataclass(frozen=True)
class Source:
    """Source of a cell's instance: `oasis.generate`, or the instance read from a file."""

    labels: Mapping[str, Any]
    identity: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    instance: Instance | None = field(default=None, repr=False)

    @property
    def draws(self) -> bool:
        """Whether each seed draws another instance; one from a file is the same for all."""
        return self.instance is None

    def make(self, seed: int) -> Instance:
        """Return the instance of this seed."""
        if self.instance is not None:
            return self.instance
        return oasis.generate(**self.arguments, seed=seed)


def drawn(point: Mapping[str, Any], base: Path, path: str) -> Source:
    """Make a source of drawn instances with the arguments `point`; `path` is named in errors."""
    options = dict(point)
    with located_at(path):
        if "counts" in options:
            with readable("counts"):
                options["counts"] = read_counts(base / options["counts"]).tolist()
        settings = resolve(**asdict(GenerateOptions()) | options).metadata()
    del settings["seed"]
    labels = {"preset": settings["preset"], **settings["parameters"]}
    labels["counts"] = point.get("counts")
    return Source(labels, {"kind": "drawn", **settings}, options)


def read(name: str, base: Path, path: str) -> Source:
    """Make a source of the instance in a file; `path` is named in errors."""
    with readable(path), located_at(path), located_at(source=name):
        instance = oasis.read(base / name)
    identity = {"kind": "read", "sha256": instance_digest(instance)}
    return Source({"file": name}, identity, instance=instance)


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: an instance, a policy, a seed and a task.

    Parameters
    ----------
    source : Source
        Source of the instance of each seed, or of another input of a task.
    policy : str or None
        Name of the policy; None in a cell that others share (`shared_cell`).
    policy_options : mapping
        All its options, as plain data. Without a seed among them, that of the cell is used.
    seed : int
        Draws the instance and the policy's fixed counts.
    task : CellTask
        The task.
    options : Options
        Options of the task.
    code : str
        Fingerprint of the code that does it.
    files : tuple of mapping
        Files that the policy depends on, with digests (`PolicyEntry.files`): the code of
        somebody's own, and what options name.
    shared : mapping
        Figures of the shared cell, once it has been run; not part of the identity.
    """

    source: Any
    policy: str | None
    policy_options: Mapping[str, Any]
    seed: int
    task: CellTask
    options: Options
    code: str
    files: tuple[Mapping[str, Any], ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def shared_cell(self) -> Cell | None:
        """The cell whose figures all cells of this instance and seed need; None without one."""
        task = self.task.shared
        if task is None:
            return None
        # The instance of a file is the same for each seed, so its optimum is solved once.
        seed = self.seed if self.source.draws else 0
        return Cell(self.source, None, {}, seed, task, self.options, fingerprint(task.function))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Plain data that determine the result."""
        policy = None if self.policy is None else {"name": self.policy, **self.policy_options}
        digests = [[one["of"], one["sha256"]] for one in self.files]
        return {
            "instance": dict(self.source.identity),
            "policy": policy,
            "seed": self.seed,
            "task": {"name": self.task.name, **self.options.to_dict()},
            "version": __version__,
            "code": self.code,
            **({"policy_files": digests} if digests else {}),
        }

    @cached_property
    def key(self) -> str:
        """Hash of the identity, which names the cell's record; equal cells share one."""
        # Sorted, because the order in which options were written does not matter.
        text = json.dumps(self.identity, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def columns(self) -> dict[str, Any]:
        """Parameters of the cell by column of the result, such as ``policy.name``."""
        columns = {f"instance.{name}": value for name, value in self.source.labels.items()}
        columns |= {"policy.name": self.policy}
        columns |= {f"policy.{name}": value for name, value in self.policy_options.items()}
        columns |= {"seed": self.seed, "task.name": self.task.name}
        columns |= {f"task.{name}": value for name, value in self.options.to_dict().items()}
        return columns

    def make_case(self) -> Case:
        """Make the cell's input and return it as a `Case` for the task."""
        instance = self.source.make(self.seed)
        maker = partial(self.make_policy, instance)
        return Case(instance, maker, self.seed, self.options, self.shared)

    def make_policy(self, instance: Any = None) -> Policy:
        """Make a fresh policy with the options and the seed of the cell."""
        if self.policy is None:
            raise InputError(f"task {self.task.name}", "a shared cell has no policy")
        # The seed of the cell is the default: one among the options of the policy takes its place.
        seed = {SEED: self.seed} if SEED in entry_of(self.policy).options else {}
        return make_policy(self.policy, instance, **seed | dict(self.policy_options))


def expand(
    config: SweepConfig,
    *,
    base: Path | None = None,
    tasks: Mapping[str, CellTask] | None = None,
) -> list[Cell]:
    """Make the cells of `config`: instances outermost, then policies, then seeds.

    Parameters
    ----------
    config : SweepConfig
        The grid.
    base : Path, optional
        Folder that names of files are relative to; default the working directory.
    tasks : mapping of str to CellTask, optional
        What `config` may ask for; default `TASKS`.

    Raises
    ------
    OasisError
        Naming the key, if a value is out of range, a file is no instance or a point comes twice.

    Examples
    --------
    >>> from experiments.sweep import sweep_config
    >>> config = sweep_config({
    ...     "instances": [{"preset": "testbed", "jobs": [6, 12]}],
    ...     "policies": [{"name": ["fifo", "drf"]}],
    ...     "seeds": {"count": 5},
    ... })
    >>> len(expand(config))
    20
    """
    task, options = _task(config, TASKS if tasks is None else tasks)
    code = fingerprint(task.function)
    sources = list(_sources(config.instances, base or Path()))
    # Equal points would share a record and still count as several seeds in the means.
    _check_distinct("instances", [source.labels for source in sources])
    files = [tuple(entry_of(name).files(chosen)) for name, chosen in config.policies]
    _check_distinct("policies", [{"name": name, **chosen} for name, chosen in config.policies])
    _check_distinct("seeds", [{"seed": seed} for seed in config.seeds])
    return [
        Cell(source, name, chosen, seed, task, options, code, needed)
        for source in sources
        for (name, chosen), needed in zip(config.policies, files, strict=True)
        for seed in config.seeds
    ]


def _task(config: SweepConfig, tasks: Mapping[str, CellTask]) -> tuple[CellTask, Options]:
    entries = dict(config.task)
    name = entries.pop("name", "run")
    task = tasks[choice(name, tasks, "task.name")]
    with located_at("task"):
        return task, task.options.read(entries)


def _sources(grids: Iterable[Mapping[str, Sequence[Any]]], base: Path) -> Iterator[Source]:
    for k, axes in enumerate(grids):
        path = f"instances[{k}]"
        for values in product(*axes.values()):  # the last axis varies fastest
            point = dict(zip(axes, values, strict=True))
            if "file" in point:
                yield read(point["file"], base, f"{path}.file")
            else:
                yield drawn(point, base, path)


def _check_distinct(key: str, points: Iterable[Mapping[str, Any]]) -> None:
    texts = set()
    for point in points:
        text = json.dumps(dict(point), sort_keys=True)
        if text in texts:
            parts = ", ".join(f"{name} = {value}" for name, value in point.items())
            raise InputError(key, f"expected each point once, got {parts} again")
        texts.add(text)
