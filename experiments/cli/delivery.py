"""The options that say where a result goes, which every command with a picture has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from experiments.cli.options import AsJson, Picture, ResultFile, Style
from experiments.cli.results import deliver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a result goes.

    Parameters
    ----------
    output : Path or None
        File for the document.
    plot : Path or None
        File for the picture.
    style : str or None
        Style of the picture, as `experiments.plotting.style.read_style` reads it.
    as_json : bool
        Whether to print the document instead of a text.
    """

    output: ResultFile = None
    plot: Picture = None
    style: Style = None
    as_json: AsJson = False

    def __call__(
        self,
        document: dict[str, Any] | Callable[[], dict[str, Any]],
        show: Callable[[], None],
        draw: Callable[[], Figure],
    ) -> None:
        """Write a result to the files that were asked for, and print it.

        Parameters
        ----------
        document, show, draw
            As for `experiments.cli.results.deliver`.
        """
        deliver(
            document,
            show,
            as_json=self.as_json,
            output=self.output,
            plot=self.plot,
            draw=draw,
            style=self.style,
        )


def with_delivery(command: Command) -> Command:
    """Decorate a command: its parameter ``delivery`` becomes the options of `Delivery`.

    A style without a picture is refused before the command begins: nothing would come of it.
    """
    names = [field.name for field in fields(Delivery)]

    def wrapper(**arguments: Any) -> Any:
        delivery = Delivery(**{name: arguments.pop(name) for name in names})
        if delivery.style is not None and delivery.plot is None:
            raise ValueError("--style: expected --plot beside it")
        return command(**arguments, delivery=delivery)

    own = inspect.signature(command, eval_str=True).parameters.values()
    flags = inspect.signature(Delivery, eval_str=True).parameters.values()
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own
        for one in (flags if parameter.name == "delivery" else (parameter,))
    ]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__doc__ = command.__doc__
    return wrapper
