"""The text of ``--help``: it fits the terminal, at any width, and no word of it is cut.

Typer's own panels end words that are too long for a column with an ellipsis.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any

import typer

from experiments.cli.layout import wrapped

WIDEST = 100  # longer lines are hard to read
INDENT = 2
LEAST_HELP = 36  # cells that a text needs beside its option; with fewer it stands below
EXAMPLE = "Example: "
CODE = "    "  # before a line of an example, which is printed as it is


def with_help(command: Any) -> Any:
    """Give a command, and all that it consists of, this text as its help."""
    command.format_help = MethodType(_format_help, command)
    for nested in getattr(command, "commands", {}).values():
        with_help(nested)
    return command


def help_text(command: Any, context: Any, width: int) -> str:
    """The help of a command.

    Parameters
    ----------
    command, context
        As typer makes them.
    width : int
        Cells of a line.
    """
    usage = " ".join([f"Usage: {context.command_path}", *command.collect_usage_pieces(context)])
    parts = [wrapped(usage, width), *_paragraphs(command.help or "", width)]
    arguments, options = _parameters(command, context)
    for heading, rows in (
        ("Arguments", arguments),
        ("Options", options),
        ("Commands", list(_commands(command))),
    ):
        if rows:
            parts.append(f"{typer.style(f'{heading}:', bold=True)}\n{_list(rows, width)}")
    parts += _paragraphs(command.epilog or "", width)
    return "\n\n".join(parts) + "\n"


def _format_help(command: Any, context: Any, formatter: Any) -> None:
    # Asked at each call: a terminal may have been resized, and a test sets COLUMNS.
    width = min(WIDEST, shutil.get_terminal_size().columns)
    formatter.write(help_text(command, context, width))


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Wrapped paragraphs; lines that are indented are an example, and stay as they are."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith(CODE):
            yield paragraph
        elif paragraph.startswith(EXAMPLE):
            yield _example(" ".join(paragraph.split()), width)
        elif paragraph:
            yield wrapped(" ".join(paragraph.split()), width)


def _example(line: str, width: int) -> str:
    """A command that can be copied, also where it is longer than a line."""
    if len(line) <= width:
        return line
    lines = wrapped(line.removeprefix(EXAMPLE), width - len(CODE) - 2).split("\n")
    return f"{EXAMPLE.strip()}\n\n" + " \\\n".join(f"{CODE}{part.strip()}" for part in lines)


def _parameters(command: Any, context: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Rows of the arguments, and rows of the options."""
    found: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            found[parameter.param_type_name == "option"].append(record)
    return found


def _commands(command: Any) -> Iterator[tuple[str, str]]:
    """Name of each subcommand, and the first sentence of its help."""
    for name, nested in getattr(command, "commands", {}).items():
        text = " ".join(inspect.cleandoc(nested.help or "").split())
        yield name, re.split(r"(?<=\.) ", text, maxsplit=1)[0]


def _list(rows: Iterable[tuple[str, str]], width: int) -> str:
    """Names and what they mean, beside each other, or below each other where there is no place."""
    entries = [(name, " ".join(text.split())) for name, text in rows]
    left = max(len(name) for name, _ in entries) + 2 * INDENT
    is_beside = width - left >= LEAST_HELP
    if not is_beside:
        left = 3 * INDENT
    lines = []
    for name, text in entries:
        body = [f"{' ' * left}{line}" for line in wrapped(text, width - left).split("\n")]
        head = f"{' ' * INDENT}{name}"
        if is_beside:
            lines += [f"{head:<{left}}{body[0][left:]}", *body[1:]]
        else:
            lines += [head, *(body if text else [])]
    return "\n".join(line.rstrip() for line in lines)
