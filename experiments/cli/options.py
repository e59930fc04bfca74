"""Arguments and options that several subcommands share."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from experiments.cli import console
from experiments.cli.files import JSON, PICTURE
from experiments.evaluation.policies import (
    INSTALLED,
    LINE,
    OASIS,
    POLICIES,
    SEED,
    OasisOptions,
    entry_of,
    having,
)
from experiments.options import (
    Duration,
    Option,
    no_such_option,
    options_of,
    read_seconds,
    read_share,
)
from oasis.model.choices import choice, did_you_mean
from oasis.model.errors import InputError, located_at
from oasis.model.validation import LARGEST_SEED
from oasis.workloads import PRESETS
from oasis.workloads.generator import ARRIVALS
from oasis.workloads.presets import MACHINES


@dataclass(frozen=True, slots=True)
class Flags:
    """Marks a parameter that is a dict of those `options` that were given, each by its flag."""

    options: Mapping[str, Option]
    panel: Callable[[str], str | None] = lambda _: None  # the heading of the help for an option

    def given(self, **values: Any) -> dict[str, Any]:
        """Return the options that the user gave, out of the `values` of all flags."""
        return {
            name: not values[name] if option.denial else values[name]
            for name, option in self.options.items()
            if values[name] is not None
        }

    def parameter(self, option: Option) -> inspect.Parameter:
        """Return the parameter from which typer makes the flag of an option."""
        name, text, default = flag(option.name), option.help, option.default
        if option.denial:
            name, _, text = option.denial.partition(": ")
        text = f"{text[:1].upper()}{text[1:]}{'' if text.endswith(']') else '.'}"
        more: dict[str, Any] = {"rich_help_panel": self.panel(option.name)}
        if values := option.choices or VALUES.get(option.name):
            more["autocompletion"] = among(values)
        if option.is_row:
            more |= read_by(option.parse, "NUMBER,...")
            default = ",".join(f"{part:g}" for part in default)
        if option.plain is not bool and default not in (None, ""):
            text += f" [default: {default}]"
        return inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                (str if option.is_row else option.kind) | None, text, {"flag": name, **more}
            ],
        )


def read_by(read: Callable[[str], Any], metavar: str) -> dict[str, Any]:
    """Return what typer needs to parse a text with `read`; its errors then name the flag."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except InputError as error:
            raise typer.BadParameter(error.detail) from None

    return {"parser": parse, "metavar": metavar}


def among(
    values: Iterable[str] | Callable[[], Iterable[str]], *, commas: bool = False
) -> Callable[[str], list[str]]:
    """Return a function that completes a text to `values`; with `commas` also behind a comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, begun = incomplete.rpartition(",") if commas else ("", "", incomplete)
        former = before.split(",")
        names = values() if callable(values) else values
        return [
            f"{before}{comma}{name}"
            for name in names
            if name.startswith(begun) and name not in former
        ]

    return complete


VALUES = {"preset": PRESETS, "arrivals": ARRIVALS, "machines": MACHINES}  # of options that are text
A_POLICY = among((*POLICIES, *INSTALLED))
POLICY_LIST = among((*POLICIES, *INSTALLED), commas=True)
# Headings of the help for the many options of traces; the other options are about reading.
READING_PANEL = "How the trace is read"
TRACE_PANELS = {
    "Which jobs": "start stride max_jobs keep min_gpus max_gpus min_duration max_duration user "
    "virtual_cluster partition qos queue cpu_jobs",
    "Slots and machines": "slot_seconds horizon arrival_slots worker_servers gpus_per_server "
    "ps_servers ps_server_cpus ps_server_memory_gb server_bandwidth_gbps model max_node_gpus",
    "What a job needs and is worth": "elasticity epochs minibatch_seconds gradient_mb "
    "worker_bandwidth_gbps ps_bandwidth_gbps ps_cpus ps_memory_gb target_factor min_priority "
    "max_priority insensitive critical seed gpus_per_worker cpus_per_gpu memory_gb_per_gpu",
}


def trace_panel(name: str) -> str:
    """Return the heading of the help under which an option of a trace stands."""
    panels = (panel for panel, names in TRACE_PANELS.items() if name in names.split())
    return next(panels, READING_PANEL)


def flag(name: str) -> str:
    """Return the flag of a Python name: ``--max-jobs`` of ``max_jobs``."""
    return f"--{name.replace('_', '-')}"


@contextmanager
def naming_flags(names: Mapping[str, Any] | tuple[str, ...], **other: str) -> Iterator[None]:
    """Make errors about parameters in `names` name their flags; `other` gives flags by name."""
    flags = {name: flag(name) for name in names} | other
    try:
        yield
    except InputError as error:
        error.rename(flags)
        raise


def comma_list(text: str, name: str) -> list[str]:
    """Return the entries between commas; raise if one is repeated. `name`: flag for messages."""
    entries = [entry.strip() for entry in text.split(",")]
    if "" in entries:
        raise InputError(name, "expected entries with commas between", text)
    for k, entry in enumerate(entries):
        if entry in entries[:k]:
            raise InputError(name, f"expected each entry once, got {entry} again")
    return entries


def numbers(kind: type[Any], what: str, most: float = math.inf) -> Callable[[str], Any]:
    """Return a function that parses numbers above 0, up to `most`; `what`: their name in errors."""

    def read(text: str) -> tuple[Any, ...]:
        entries = comma_list(text, "")
        try:
            values = [kind(entry) for entry in entries]
        except ValueError:
            values = [math.nan]
        if not all(0 < value <= most and value < math.inf for value in values):
            raise InputError("", f"expected {what} with commas between", text)
        return tuple(dict.fromkeys(values))

    return read


def _methods() -> Iterable[str]:
    from offline import METHODS  # noqa: PLC0415 (needs an extra)

    return METHODS


def known_method(name: str) -> str:
    """Return `name` if it is an offline method; otherwise raise, before any work is done."""
    return name if name == AUTO else choice(name, _methods(), "--method")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the user gave this parameter, even with its default value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_given(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise an error with text `why` if the user gave one of these parameters."""
    for name in names:
        if is_given(context, name):
            raise InputError(flag(name), why)


def check_style(name: str | None) -> str | None:
    """Return `name` if it is a style of pictures; otherwise raise, before any work is done."""
    if name is not None:
        from experiments.plotting.canvas import read_style  # noqa: PLC0415 (needs an extra)

        with naming_flags(("style",)):
            read_style(name)
    return name


AUTO = "auto"  # the method that chooses one
InstanceFile = Annotated[Path, typer.Argument(metavar="FILE", help="Instance file (JSON).")]
COUNT = {"metavar": "N", "min": 1}
AsJson = Annotated[bool, "Print one JSON document on standard output.", {"flag": "--json"}]
LIMIT_TEXT = (
    "Time for each offline solve: 60, 90s, 5m, 1h; inf: no limit. OASiS's run before it does not "
    "count. [default: {}]"
)
TIME = read_by(read_seconds, "TIME")
TimeLimit = Annotated[float | None, LIMIT_TEXT.format("60 seconds"), TIME]
WorkLimit = Annotated[
    float | None,
    "Units of work, about a second each, instead of seconds: the result then repeats, "
    "however busy the machine is. [default: a time limit]",
    read_by(partial(read_seconds, what="units of work", is_time=False), "UNITS"),
]
Gap = Annotated[
    float | None,
    "End when (bound - objective) / objective is at most this: 0.01 or 1%. inf "
    "stops immediately; the bound is then very weak. [default: 0, a proof]",
    read_by(read_share, "SHARE"),
]
NoImprovement = Annotated[
    float | None,
    "End a solve when the interval became shorter by less than a thousandth within this time "
    "(units of work with --work-limit). [default: inf]",
    read_by(partial(read_seconds, what="an amount"), "TIME"),
]
SolverSeed = Annotated[int, "Seed of the offline solve.", COUNT | {"min": 0, "max": LARGEST_SEED}]
Method = Annotated[
    str,
    "Offline. milp, benders: exact. colgen: mostly an interval. bruteforce: exact, tiny "
    "instances, ignores limits. auto: milp if small, colgen if very large, else benders.",
    {"autocompletion": among(_methods), "callback": known_method},
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Flags for what ends an offline solve."""

    time_limit: TimeLimit = None
    work_limit: WorkLimit = None
    gap: Gap = None
    no_improvement: NoImprovement = None

    def given(self) -> dict[str, Any]:
        """Return the limits as `offline.solve` takes them; a minute if time and work have none."""
        if self.work_limit is not None and isinstance(self.no_improvement, Duration):
            expected = "expected units of work with --work-limit, got a time"
            raise InputError("--no-improvement", expected)
        names = Limits.__dataclass_fields__
        limits = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.time_limit is None and self.work_limit is None:
            limits["time_limit"] = 60.0
        return limits


@dataclass(frozen=True, slots=True)
class Solving(Limits):
    """Flags for how an instance is solved offline."""

    solver_seed: SolverSeed = 0
    method: Method = AUTO


OasisFlags = Annotated[dict[str, Any], Flags(options_of(OasisOptions))]


@dataclass(frozen=True, slots=True)
class Workers:
    """Flags for where many runs take place."""

    processes: Annotated[
        int | None,
        "Worker processes. [default: one per core]",
        COUNT | {"max": 1024},
    ] = None
    engine: Annotated[
        Literal["local", "dask"], "local, or dask: an existing cluster, at --scheduler."
    ] = "local"
    scheduler: Annotated[str | None, "Such as tcp://10.0.0.1:8786.", {"metavar": "ADDRESS"}] = None


Output = Annotated[Path, "File to write; -: standard output.", JSON]
ResultFile = Annotated[
    Path | None,
    "Also write the JSON result to this file; -: print it instead, as --json does.",
    JSON,
]
PrintedFile = Annotated[Path | None, "File to write. [default: standard output]", JSON]
Picture = Annotated[
    Path | None, "Draw it to this file (.png, .svg or .pdf).", {"flag": "--plot"}, PICTURE
]
Style = Annotated[
    str | None,
    "Style of the picture: paper (a column of a printed page), a file that ends in "
    ".mplstyle, or a style that matplotlib has, such as grayscale.",
    {"callback": check_style, "metavar": "STYLE"},
]


SET = "--set"
SHARED = {SEED: "--policy-seed", LINE: "--line"}  # flags that set an option of every policy

SetMethod = Annotated[
    list[str] | None,
    "Set a parameter of the method, such as benders.window=3; repeatable.",
    {"flag": SET, "metavar": "METHOD.NAME=X"},
]
Set = Annotated[
    list[str] | None,
    "Set an option of policy P, such as las.thresholds=1,5; repeatable. An unknown "
    "option is refused with a list of all.",
    {"flag": SET, "metavar": "P.OPTION=X"},
]
PolicySeed = Annotated[
    int | None, f"Sets the option seed of {', '.join(having(SEED))}. [default: 0]"
]
PolicyLine = Annotated[
    str | None,
    "strict: a job that does not fit blocks the jobs behind it; fit: they may pass. Sets "
    f"the option line of {', '.join(having(LINE))}. [default: strict]",
    {"metavar": "strict|fit"},
]

Chosen = dict[str, dict[str, Any]]


def known_policy(name: str, option: str, among: Sequence[str] = tuple(POLICIES)) -> str:
    """Return the name of a policy in `among`, or ``module:Name``; errors name flag `option`."""
    with located_at(option):
        try:
            return entry_of(name, among).name
        except InputError as error:
            if (other := name.casefold()) in POLICIES:
                error.hint += f"; {other} is a policy, but this command does not take it"
            raise


def known_policies(text: str, option: str, among: Sequence[str] = tuple(POLICIES)) -> list[str]:
    """Return the names of policies in a text with commas; raise if one is repeated."""
    names = [known_policy(name, option, among) for name in comma_list(text, option)]
    # Once more, because fifo and FIFO are two entries and one policy.
    return comma_list(",".join(names), option)


def policies_of(known: Sequence[str]) -> dict[str, Any]:
    """Return what typer needs to parse and complete a list of the `known` policies."""
    read = read_by(lambda text: tuple(known_policies(text, "", known)), "NAME,...")
    return read | {"autocompletion": among((*known, *INSTALLED), commas=True)}


APolicy = Annotated[
    str,
    f"One of: {', '.join(POLICIES)}.",
    {"autocompletion": A_POLICY, "callback": lambda name: known_policy(name, "--policy")},
]


def method_params(method: str, assignments: Sequence[str] | None) -> dict[str, Any] | None:
    """Return what ``--set METHOD.NAME=VALUE`` sets, values as JSON or text; None if nothing."""
    from offline.solve import params_of  # noqa: PLC0415 (needs an extra)

    params: dict[str, Any] = {}
    for text in assignments or ():
        place, _, value = text.partition("=")
        # The name of the method itself may be left out, as in benders.window=3 for auto.
        *parts, name = [word for word in place.strip().split(".") if word != method] or [""]
        inner: Any = params
        for part in parts:
            inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or name in inner:
            raise InputError(f"{SET} {place.strip()}", "expected one value, got two")
        try:
            inner[name] = json.loads(value)
        except ValueError:
            inner[name] = value
    kind = params_of(method)
    try:
        kind.from_dict(params)
    except InputError as error:
        own = () if method == AUTO else (method,)  # as it is written
        error.field = f"{SET} " + ".".join([*own, *filter(None, (error.field,))])
        raise
    return params or None


def note_unused(params: Mapping[str, Any] | None, method: str) -> None:
    """Say which parameters had no effect, because "auto" took another `method` than theirs."""
    for name in params or {}:
        if name in _methods() and name != method:
            console.note(f"{SET} {name}: no effect, as {method} solved this instance")


def choose_options(
    names: Sequence[str],
    assignments: Sequence[str] | None,
    *,
    oasis: Mapping[str, Any] | None = None,
    shared: Mapping[str, Any] | None = None,
) -> Chosen:
    """Return by policy the options set with ``--set``, by flags of OASiS, or `shared` ones."""
    options = {name: entry_of(name).options for name in names}
    # how the user spells each option, for errors
    spelled = {n: {"": f"{SET} {n}", **{o: f"{SET} {n}.{o}" for o in options[n]}} for n in names}
    chosen: Chosen = {name: {} for name in names}
    for text in assignments or ():
        owner, option = _assigned(text, options)
        where = f"{SET} {owner}.{option}"
        if option in chosen[owner]:
            raise InputError(where, "expected one value, got two")
        with located_at(where):
            chosen[owner][option] = options[owner][option].parse(text.partition("=")[2])
    for option, value in (oasis or {}).items():
        denial, _, _ = POLICIES[OASIS].options[option].denial.partition(": ")
        flagged = denial or flag(option)
        if OASIS not in names:
            raise InputError(flagged, f"an option of oasis alone, got {', '.join(names)}")
        if option in chosen[OASIS]:
            raise InputError(flagged, f"expected no {SET} {OASIS}.{option} beside it")
        chosen[OASIS][option], spelled[OASIS][option] = value, flagged
    for option, value in (shared or {}).items():
        takers = having(option, names) if value is not None else []
        if value is not None and not takers:
            expected = f"expected one of {', '.join(having(option))} among the policies"
            raise InputError(SHARED[option], f"{expected}, got {', '.join(names)}")
        free = [name for name in takers if option not in chosen[name]]  # --set goes before
        if takers and not free:
            raise InputError(SHARED[option], f"expected no {SET} {takers[0]}.{option} beside it")
        for name in free:
            chosen[name][option], spelled[name][option] = value, SHARED[option]
    for name, own in chosen.items():
        try:
            whole = entry_of(name).resolve(own, named=False)
        except InputError as error:
            error.rename(spelled[name])
            raise
        chosen[name] = {option: whole[option] for option in own}
    return chosen


def _assigned(text: str, options: Mapping[str, Mapping[str, Option]]) -> tuple[str, str]:
    """Return policy and option of ``POLICY.OPTION=VALUE``; raise if one is unknown."""
    place, equals, _ = text.partition("=")
    owner, dot, name = place.strip().rpartition(".")
    if not (equals and dot and owner and name):
        raise InputError(SET, "expected POLICY.OPTION=VALUE", text)
    where = f"{SET} {owner}.{name}"
    owner = {each.casefold(): each for each in options}.get(owner.casefold(), owner)
    if owner not in options:
        policies = ", ".join(options)
        policies = policies if len(options) == 1 else f"a policy that runs here ({policies})"
        expected = f"expected an option of {policies}, got {owner!r}"
        raise InputError(where, f"{expected}{did_you_mean(owner, options)}")
    if name not in options[owner]:
        raise InputError(where, f"{no_such_option(owner, name, options[owner])}")
    return owner, name
