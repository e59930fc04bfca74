"""Options as data: read off a dataclass or a signature, checked, and read from text.

An option is written down once, as a field of a dataclass or as a parameter of a constructor. The
command line, the tables of a sweep and the figures are derived from what `options_of` finds there.
Limits are as people write them: ``90s``, ``5m``, ``1h``, ``500ms``; ``5%``.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from oasis.model.choices import did_you_mean
from oasis.model.errors import InputError, describe
from oasis.traces.times import elapsed_seconds
from oasis.workloads import PRESETS
from oasis.workloads.presets import MIX, PRIORITY


class Duration(float):
    """Seconds that were read with a unit of time, and so cannot be meant as units of work."""


def read_seconds(value: Any, what: str = "seconds", *, is_time: bool = True) -> float:
    """Read seconds >= 0 or infinity; with `is_time`, texts such as ``5m`` become a `Duration`."""
    parsed = _number(value)
    if parsed is None and is_time and isinstance(value, str):
        # A limit of 1:30 may be minutes or hours.
        seconds = math.nan if ":" in value else elapsed_seconds(value.strip())
        parsed = None if math.isnan(seconds) else Duration(seconds)
    if parsed is None or not parsed >= 0:  # nor is NaN
        is_number = parsed is not None or not is_time
        forms = "" if is_number else " (such as 90, 90s, 5m, 1h or 500ms)"
        raise InputError("", f"expected {what} >= 0, or inf{forms}, got {_shown(value, parsed)}")
    return parsed


def read_share(value: Any) -> float:
    """Read a share from 0 to 1, or infinity: ``0.05`` and ``5%`` are the same."""
    text = value.strip() if isinstance(value, str) else ""
    parsed = _number(text[:-1], 100.0) if text.endswith("%") else _number(value)
    # Above 1 it is 5 for 5 % more likely than 500 %.
    if parsed is None or not (0 <= parsed <= 1 or parsed == math.inf):
        forms = "from 0 to 1, such as 0.05 or 5%, or inf"
        raise InputError("", f"expected a share {forms}, got {_shown(value, parsed)}")
    return parsed


def _number(value: Any, divisor: float = 1.0) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) / divisor
    except (ValueError, OverflowError):
        return None


def _shown(value: Any, parsed: float | None) -> str:
    return repr(value) if parsed is None else f"{parsed:g}"


WORDS = {bool: "true or false", int: "an integer", float: "a finite number", str: "text"}
NOT_FINITE = ("inf", "-inf", "nan")


def is_not_finite(value: Any) -> bool:
    """Return whether a value is infinite or NaN, which JSON can express only as text."""
    return isinstance(value, float) and not math.isfinite(value)


def no_such_option(owner: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown option, with all options and the nearest one."""
    names = list(known)
    has = ", ".join(names) or "no options"
    return f"no such option; {owner} has {has}{did_you_mean(name, names)}"


def check_known(keys: Iterable[str], known: Iterable[str]) -> None:
    """Raise `InputError` for the first of `keys` that is not among `known`."""
    names = list(known)
    for name in keys:
        if name not in names:
            expected = f"unknown key {name!r}; expected one of {', '.join(names) or 'none'}"
            raise InputError("", f"{expected}{did_you_mean(name, names)}")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: name, type, default, and a sentence that explains it."""

    name: str
    # Its annotation: bool, int, float, str, a `Literal` of texts or a tuple of numbers, each of
    # them also with None.
    kind: Any
    default: Any
    help: str = ""  # effect in words, without a full stop
    # Flag of the command line that sets an option to False which otherwise is True, and what it
    # then does, such as ``--raw-units: prices in raw units``.
    denial: str = ""
    choices: tuple[str, ...] = ()

    @property
    def plain(self) -> Any:
        """The type of its values other than None."""
        return without_none(self.kind)

    @property
    def is_row(self) -> bool:
        """Whether a value consists of several numbers."""
        return get_origin(self.plain) is tuple

    def check(self, value: Any) -> Any:
        """Return `value` converted to the option's type; raise `InputError` if it has another."""
        if value is None and NoneType in get_args(self.kind):
            return None
        if is_not_finite(self.default) and value in (*NOT_FINITE, self.default):
            return float(value)  # such as most=inf, no limit: JSON has no such number, but its text
        return _checked(value, self.plain)

    def parse(self, text: str) -> Any:
        """Read a value from text as on the command line; raise `InputError` if it is wrong."""
        if text.lower() in ("none", "null") and NoneType in get_args(self.kind):
            return None
        if self.plain is str or get_origin(self.plain) is Literal:
            return self.check(text)
        if self.is_row:
            parts = text.strip().removeprefix("[").removesuffix("]").split(",")
            return self.check([_read(part) for part in parts if part.strip()])
        return self.check(_read(text))


def described(default: Any, text: str, *, denial: str = "") -> Any:
    """Return a dataclass field with a default, a help text, and `denial` as in `Option`."""
    return field(default=default, metadata={"help": text, "denial": denial})


def options_of(source: Callable[..., Any], *, without: tuple[str, ...] = ()) -> dict[str, Option]:
    """Return options by name: fields of a dataclass, or parameters of a constructor.

    Only those with a default and a type that text can express are options.
    """
    # What the metadata of a field do not say is taken from the section Parameters of the docstring.
    sentences: dict[str, str] = {}
    for owner in reversed(inspect.getmro(source) if isinstance(source, type) else (source,)):
        sentences |= _sentences(inspect.cleandoc(owner.__doc__ or ""))
    fields: Mapping[str, Field[Any]] = getattr(source, "__dataclass_fields__", {})
    options = {}
    for name, parameter in inspect.signature(source, eval_str=True).parameters.items():
        if name in without or parameter.default is parameter.empty:
            continue
        kind, default = parameter.annotation, parameter.default
        if kind is parameter.empty:  # tuples of numbers are rows of any length
            is_row = isinstance(default, tuple) and {*map(type, default)} <= {int, float}
            kind = tuple[float, ...] if is_row and default else type(default)
        if not _is_known(without_none(kind)):
            continue
        metadata = fields[name].metadata if name in fields else {}
        text = metadata.get("help") or sentences.get(name, "")
        denial, choices = metadata.get("denial", ""), getattr(metadata.get("kind"), "choices", ())
        options[name] = Option(name, kind, default, text, denial, choices)
    return options


def _sentences(document: str) -> dict[str, str]:
    """Return the texts of the numpydoc section ``Parameters`` by name of the parameter."""
    section = document.partition("Parameters\n----------\n")[2]
    section = re.split(r"\n.*\n-+\n", f"\n{section}\n")[0]  # up to the next section
    found = re.findall(r"(?<=\n)(\w[\w, ]*?)(?: : .*)?\n((?: .*\n|\n)*)", section)
    texts = {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}
    return {name: text.removesuffix(".") for name, text in texts.items() if text}


def _is_known(kind: Any) -> bool:
    if get_origin(kind) is tuple:
        return all(part in (int, float, Ellipsis) for part in get_args(kind))
    return get_origin(kind) is Literal or kind in WORDS


def without_none(kind: Any) -> Any:
    """Return the type that is not None, if just one can be read from text; else `kind`."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    expressible = list(filter(_is_known, parts))
    return expressible[0] if len(expressible) == 1 else kind


def _read(text: str) -> Any:
    """Read a number or truth value; return any other text unchanged, for the check to refuse."""
    try:
        # JSON knows truth values in lower case only, and people write True.
        return json.loads(text.strip().lower())
    except ValueError:
        return text


def _checked(value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            words = list(map(str, get_args(kind)))
            suggested = did_you_mean(value, words)
            raise InputError("", f"expected {' or '.join(words)}, got {describe(value)}{suggested}")
        return value
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        is_open = kinds[-1] is Ellipsis
        if not isinstance(value, list | tuple) or not (is_open or len(value) == len(kinds)):
            raise InputError("", f"expected {'' if is_open else f'{len(kinds)} '}numbers", value)
        return tuple(map(_checked, value, kinds[:1] * len(value) if is_open else kinds))
    is_right = isinstance(value, kind)
    if kind is float:
        # A whole number is a float here, but not the other way round.
        is_right = isinstance(value, int | float) and abs(value) < math.inf
    if not is_right or (kind is not bool and isinstance(value, bool)):
        text, hint = str(value).strip(), ""
        if (
            kind is float
            and text.endswith("%")
            and (share := _number(text[:-1], 100.0)) is not None
        ):
            hint = f"; a share is a number from 0 to 1, {share:g} for {text}"
        raise InputError("", f"expected {WORDS[kind]}", value, hint=hint)
    return kind(value)


_FROM_PRESET = "[default: the preset's]"


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Arguments of a random instance; `oasis.generate` checks them."""

    preset: str = described("calibrated", f"settings to draw from: {', '.join(PRESETS)}")
    jobs: int | None = described(None, f"number of jobs I. {_FROM_PRESET}")
    worker_servers: int | None = described(None, f"machines for workers H. {_FROM_PRESET}")
    ps_servers: int | None = described(
        None, f"machines for parameter servers K; 0: all-reduce. {_FROM_PRESET}"
    )
    horizon: int | None = described(None, f"slots T. {_FROM_PRESET}")
    seed: int = described(0, "the same seed gives the same bytes")
    arrivals: str | None = described(
        None, "kind: uniform, poisson or google (shaped by --counts). [default: uniform]"
    )
    counts: str | None = described(None, "CSV hour,job_submits that shapes the arrivals")
    slot_seconds: float | None = described(None, f"length of a slot. {_FROM_PRESET}")
    machines: str = described(
        "gpu_workers",
        "machine types: gpu_workers, or as_printed (the paper swaps workers and parameter servers)",
    )
    priority: tuple[float, float] = described(PRIORITY, "range of gamma1, the jobs' values")
    mix: tuple[float, float, float] = described(
        MIX, "shares of time-insensitive, -sensitive and -critical jobs"
    )
