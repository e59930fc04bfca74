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
    """An object that never changes: copies of its owner share it."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class Summarised:
    """Gives a class a short ``repr`` and a small table in notebooks, both from `summary`."""

    __slots__ = ()

    def summary(self) -> tuple[str, Facts]:
        """The title, and pairs of a name and a text: the fields of a dataclass, if no others."""
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
    """The call that makes an object like `value`: its class and some options."""
    arguments = ", ".join(f"{name}={cut(repr(option))}" for name, option in options.items())
    return f"{type(value).__name__}({arguments})"


def cut(text: str) -> str:
    """`text`, or its beginning if it is longer than `LONGEST`."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def short(value: float | None) -> str:
    """A number for people, six significant digits; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"
