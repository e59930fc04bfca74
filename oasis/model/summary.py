"""What stands for an object where it is shown: the facts that matter, in text and in a notebook."""

from __future__ import annotations

from html import escape

Facts = list[tuple[str, str]]


class Summarised:
    """Gives a class a short ``repr`` and a small table in notebooks, both from `summary`.

    Examples
    --------
    >>> from oasis.model.summary import Summarised
    >>> class Trip(Summarised):
    ...     def summary(self):
    ...         return "Trip", [("to", "Oslo"), ("nights", "3")]
    >>> Trip()
    <Trip: to Oslo, nights 3>
    """

    __slots__ = ()

    def summary(self) -> tuple[str, Facts]:
        """The title, and pairs of a name and what is to be said of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, facts = self.summary()
        return f"<{title}: {', '.join(f'{name} {value}' for name, value in facts)}>"

    def _repr_html_(self) -> str:
        title, facts = self.summary()
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in facts
        )
        return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def short(value: float | None) -> str:
    """A number for people, six significant digits; a dash where there is none.

    Examples
    --------
    >>> short(1234.56789), short(None)
    ('1234.57', '-')
    """
    return "-" if value is None else f"{value:.6g}"
