"""Tables of a configuration, and pydantic's errors in the words of the other messages."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from experiments.evaluation.options import OptionError
from oasis.model.choices import did_you_mean
from oasis.model.validation import describe


class Table(BaseModel):
    """A table of a configuration: no unknown keys, no conversions, no infinities."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        for name in data if isinstance(data, dict) else ():
            if name not in cls.model_fields and cls.model_config["extra"] == "forbid":
                known = ", ".join(cls.model_fields) or "none"
                suggested = did_you_mean(name, cls.model_fields)
                raise ValueError(f"unknown key {name!r}; expected one of {known}{suggested}")
        return data


def explain(error: ValidationError, data: Any, prefix: str = "") -> str:
    """The first error of several, in one line."""
    first = error.errors(include_url=False)[0]
    path = _path(first["loc"], data, prefix)
    wrong = first.get("ctx", {}).get("error")
    if isinstance(wrong, OptionError):  # found by the registry of policies, one level further in
        path += f".{wrong.option}" if wrong.option else ""
        return f"{path}: {wrong.expected}"
    return f"{path}: {_wording(first)}" if path else _wording(first)


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


def _wording(error: Any) -> str:
    message: str = error["msg"]
    match error["type"]:
        case "missing":
            return "missing; this key is required"
        case "value_error":
            return message.removeprefix("Value error, ")
        case "too_short":
            return "expected at least one value, got none"
    wanted = message.removeprefix("Input should be ").removeprefix("a valid ")
    return f"expected {wanted}, got {describe(error['input'])}"
