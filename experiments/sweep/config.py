"""The configuration of a sweep (docs/sweeps): TOML in, a validated model out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from experiments.evaluation.options import (
    GenerateOptions,
    Option,
    options_of,
    without_none,
)
from experiments.evaluation.policies import POLICIES, SEED, PolicyEntry, entry_of
from oasis.model.choices import did_you_mean
from oasis.model.errors import InputError
from oasis.model.file_kinds import SWEEP, kind_of, read_content, refuse_other
from oasis.model.validation import LARGEST_COUNT


class ConfigTable(BaseModel):
    """A table of a configuration: no unknown keys, no conversions, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        for name in data if isinstance(data, dict) else ():
            if name not in cls.model_fields and cls.model_config["extra"] == "forbid":
                known = ", ".join(cls.model_fields) or "none"
                suggested = did_you_mean(name, cls.model_fields)
                raise InputError("", f"unknown key {name!r}; expected one of {known}{suggested}")
        return data


def explained(error: ValidationError, data: Any, prefix: str = "") -> InputError:
    """The first error of several as one of the toolkit's."""
    first = error.errors(include_url=False)[0]
    path = _path(first["loc"], data, prefix)
    found = first.get("ctx", {}).get("error")
    wrong = found if isinstance(found, InputError) else _reworded(first)
    return wrong.within(path) if path else wrong


def _path(places: tuple[int | str, ...], data: Any, prefix: str) -> str:
    """``instances[0].jobs[1]``; a value that stands for a list of one has no index."""
    path, here = prefix, data
    for place in places:
        if isinstance(place, int):
            if isinstance(here, list) and place < len(here):
                path, here = f"{path}[{place}]", here[place]
        else:
            path = f"{path}.{place}" if path else place
            here = here.get(place) if isinstance(here, dict) else None
    return path


WORDS = {
    "bool_type": "boolean",
    "dict_type": "dictionary",
    "finite_number": "a finite number",
    "float_type": "number",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "greater than or equal to {ge}",
    "int_type": "integer",
    "less_than_equal": "less than or equal to {le}",
    "list_type": "list",
    "literal_error": "{expected}",
    "model_type": "a table",
    "string_type": "string",
}  # type of an error of pydantic -> what is expected


def _reworded(error: Any) -> InputError:
    match error["type"]:
        case "missing":
            return InputError("", "missing; this key is required")
        case "too_short":
            return InputError("", "expected at least one value, got none")
    wanted = WORDS[error["type"]].format(**error.get("ctx", {}))
    return InputError("", f"expected {wanted}", error["input"])


Item = TypeVar("Item")
# Seeds are written out as a list: a typo must not fill the memory.
MOST_SEEDS = 1_000_000


def _values(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _rows(value: Any) -> Any:
    """Wrap a single row of numbers in a list: the axis is a list of rows."""
    if isinstance(value, list) and not any(isinstance(entry, list) for entry in value):
        return [value]
    return value


def _seeds(value: Any) -> Any:
    """Write out a number of seeds, or ``{first = 0, count = 5}``: both are the seeds 0 to 4."""
    if isinstance(value, list):
        return value
    given = value if isinstance(value, dict) else {"count": value}
    first, count = given.get("first", 0), given.get("count")
    known = not set(given) - {"first", "count"}
    if not (known and _whole(first, 0, LARGEST_COUNT) and _whole(count, 1, MOST_SEEDS)):
        expected = (
            f"expected how many seeds, 1..{MOST_SEEDS}, {{first = 0, count = 5}}, or a list of "
            "the seeds themselves, such as [0, 7]"
        )
        raise InputError("", expected, value)
    return list(range(first, first + count))


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


Axis = Annotated[list[Item], BeforeValidator(_values), Field(min_length=1)]
RowAxis = Annotated[list[list[float]], BeforeValidator(_rows), Field(min_length=1)]


class _Instances(ConfigTable):
    """Base of `InstanceGrid`, to which the options of `oasis.generate` are added."""

    file: Axis[str] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        others = sorted(self.model_fields_set - {"file"})
        if self.file is not None and others:
            raise InputError("", f"expected file alone, got {others[0]} beside it")
        return self


def _axis(option: Option) -> Any:
    kind = without_none(option.kind)
    return (RowAxis if option.is_row else Axis[kind]) | None  # type: ignore[valid-type]


_GENERATE: Any = {
    name: (_axis(option), None)
    for name, option in options_of(GenerateOptions, without=(SEED,)).items()
}
InstanceGrid = create_model(
    "InstanceGrid",
    __base__=_Instances,
    __module__=__name__,
    __doc__="""One entry of ``instances``: files, or settings to draw from; a list is an axis.

    Parameters
    ----------
    file : str or list of str
        Instance files, relative to the configuration; excludes everything else.
    **options
        The fields of `GenerateOptions` but for the seed, which is the cell's; the value of
        ``priority`` and ``mix`` is a list of numbers, so their axis is a list of lists.
    """,
    **_GENERATE,
)


class PolicyGrid(ConfigTable):
    """One entry of ``policies``; a list of values is an axis.

    Every option of the policy (`experiments.evaluation.policies`) can stand beside the name. With
    several names, an option must be one of each of them.

    Parameters
    ----------
    name : str or list of str
        Names of `experiments.evaluation.policies.POLICIES`.
    """

    model_config = ConfigDict(extra="allow")

    name: Axis[Annotated[str, AfterValidator(lambda name: entry_of(name).name)]]

    @model_validator(mode="before")
    @classmethod
    def _current_names(cls, data: Any) -> Any:
        """Read the older key ``raw_units`` as the opposite of ``normalize``."""
        if not isinstance(data, dict) or "raw_units" not in data:
            return data
        kept = {name: value for name, value in data.items() if name != "raw_units"}
        denied = [not v if isinstance(v, bool) else v for v in _values(data["raw_units"])]
        return {"normalize": denied, **kept}

    @model_validator(mode="after")
    def _options_exist_and_are_right(self) -> Self:
        self.points()
        return self

    def points(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and all options of each policy in the entry; the last axis varies fastest.

        Only a seed that is not given is left out: it is that of the cell.

        Raises
        ------
        InputError
            If an option does not exist or has a wrong value.
        """
        return [
            (name, point)
            for name in self.name
            for point in _policy_points(entry_of(name), self.model_extra or {})
        ]


def _policy_points(entry: PolicyEntry, axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    for option in axes:
        if option not in entry.options:
            known = [other.name for other in POLICIES.values() if option in other.options]
            names = " or ".join(map(repr, known))
            raise InputError(
                "",
                f"expected {option} with name = {names} alone, got {entry.name}"
                if known
                else f"unknown key {option!r}; {entry.name} has {', '.join(entry.options)}"
                f"{did_you_mean(option, entry.options)}",
            )
    choices = {option: _choices(entry, option, value) for option, value in axes.items()}
    # In the order of the policy's options, so that the order of keys in a file changes no row.
    ordered = [option for option in entry.options if option in choices]
    points = []
    for choice in product(*(choices[option] for option in ordered)):
        given = dict(zip(ordered, choice, strict=True))
        point = entry.resolved(given)
        if SEED not in given:
            point.pop(SEED, None)
        points.append(point)
    return points


def _choices(entry: PolicyEntry, option: str, value: Any) -> list[Any]:
    is_row = entry.options[option].is_row and isinstance(value, list)
    values: list[Any] = _rows(value) if is_row else _values(value)
    if not values:
        raise InputError(option, "expected at least one value, got none")
    return values


class SweepConfig(ConfigTable):
    """A grid of instances, policies and seeds, and what to do with each cell.

    Parameters
    ----------
    instances : list of InstanceGrid
        Each entry is the product of its axes.
    policies : list of PolicyGrid
        Entries of ``policies``.
    seeds : list of int
        Draw the instances, and the fixed counts of policies that have them. A file may give how
        many there are, from 0 on, as the ``--seeds`` of the command line does.
    task : dict
        ``name`` of a task, and its options.
    """

    instances: Annotated[list[InstanceGrid], Field(min_length=1)]  # type: ignore[valid-type]
    policies: Annotated[list[PolicyGrid], Field(min_length=1)]
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=LARGEST_COUNT)]],
        BeforeValidator(_seeds),
        Field(min_length=1),
    ] = Field([0])
    task: dict[str, Any] = Field({"name": "run"})


def sweep_config(data: dict[str, Any]) -> SweepConfig:
    """Check plain data; errors name the key and what was expected there.

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
    >>> [point["line"] for _, point in config.policies[0].points()]
    ['strict', 'fit']
    """
    try:
        return SweepConfig.model_validate(data)
    except ValidationError as error:
        raise explained(error, data) from None


def read_config(path: Path) -> SweepConfig:
    """Read a TOML file; errors name the key and what was expected there, or what it is instead."""
    content = read_content(path)
    try:
        return sweep_config(tomllib.loads(content.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        text = content.decode("utf-8", errors="replace")
        refuse_other(kind_of(text), (SWEEP,), "the configuration of a sweep", str(path))
        raise InputError("", f"expected TOML: {error}") from None
