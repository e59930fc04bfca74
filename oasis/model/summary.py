"""What objects of the model share: a short representation, shared copies, counts in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from typing import Any, Self

Facts = list[tuple[str, str]]
LONGEST = 48  # characters of one value in a `repr`


def how_many(count: int, unit: str) -> str:
    """Return a number of things in words, such as "1 row" or "2 entries"."""
    several = f"{unit.removesuffix('y')}ies" if unit.endswith("y") else f"{unit}s"
    return f"{count} {unit if count == 1 else several}"


class Unchanging:
    """Base of classes whose objects never change: `deepcopy` returns the object itself."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class Summarised:
    """Base of classes that get a short ``repr`` and a table in notebooks from `summary`."""

    __slots__ = ()

    def summary(self) -> tuple[str, Facts]:
        """Return a title and pairs (name, text); by default those of the dataclass's fields."""
        own: Any = type(self)
        values = ((one.name, getattr(self, one.name)) for one in fields(own))
        facts = [(name, short(v) if isinstance(v, float) else str(v)) for name, v in values]
        return own.__name__, facts

    def __repr__(self) -> str:
        title, facts = self.summary()
        return f"<{title}: {', '.join(f'{name} {cut(value)}'.rstrip() for name, value in facts)}>"

    def _repr_html_(self) -> str:
        title, facts = self.summary()
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in facts
        )
        return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def called(value: object, options: Mapping[str, Any]) -> str:
    """Return the text of a call that makes an object like `value`, with these options."""
    arguments = ", ".join(f"{name}={cut(repr(option))}" for name, option in options.items())
    return f"{type(value).__name__}({arguments})"


def cut(text: str) -> str:
    """Return `text`, or its beginning and "..." if it is longer than `LONGEST`."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def short(value: float | None) -> str:
    """Return the number as text with six significant digits; "-" for None."""
    return "-" if value is None else f"{value:.6g}"
