"""``oasis policies``: the policies that there are, and what ``--set`` takes of each."""

from __future__ import annotations

from textwrap import fill
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

import oasis
from experiments.cli import console
from experiments.cli.options import A_POLICY, AsJson, ResultFile, known_policy
from experiments.cli.results import deliver
from experiments.evaluation.options import Option, without_none
from experiments.evaluation.policies import INSTALLED, POLICIES, PolicyEntry, entry_of
from oasis.model.errors import InputError

WORDS = {bool: "true, false", int: "integer", float: "number", str: "text"}


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=A_POLICY,
            help="Only this policy, with all its options.",
        ),
    ] = None,
    output: ResultFile = None,
    as_json: AsJson = False,
) -> None:
    """List the policies, or the options of one of them.

    Wherever a policy is named, FILE.py:NAME or MODULE:NAME stands for a class of your own:
    mine.py:LeastWork is the class LeastWork of that file, mine:LeastWork that of the module mine,
    in the working directory or installed.

    Example: oasis policies las
    """
    names = [*POLICIES, *INSTALLED] if name is None else [known_policy(name, "NAME")]
    entries = {}
    for each in names:
        try:
            entries[each] = entry_of(each)
        except InputError as error:
            if name is not None or each not in INSTALLED:
                raise
            console.note(f"{each}, of an installed package, is left out: {error}")
    document = {
        "policies": {name: _document(entry) for name, entry in entries.items()},
        "version": oasis.__version__,
    }

    def show() -> None:
        if name is None:
            _list(entries)
        else:
            _explain(*next(iter(entries.items())))  # under its own name, not as it was typed

    deliver(document, show, as_json=as_json, output=output)


def _document(entry: PolicyEntry) -> dict[str, Any]:
    return {
        "summary": entry.summary,
        "needs_instance": entry.needs_instance,
        "knows_forms": entry.knows_forms,
        "options": {
            name: {"type": kind_of(option), "default": option.default, "help": option.help}
            for name, option in entry.options.items()
        },
    }


def _list(entries: dict[str, PolicyEntry]) -> None:
    rows = [
        (name, ", ".join(entry.options) or "-", entry.summary) for name, entry in entries.items()
    ]
    console.print_rows((("policy", False), ("options", False), ("what it does", False)), rows)
    console.print_text(
        "\noasis policies NAME explains its options; --set NAME.OPTION=VALUE sets one."
    )


def _explain(name: str, entry: PolicyEntry) -> None:
    where = "instances alone" if entry.needs_instance else "instances, plain traces and workloads"
    forms = "chooses one of a job's" if entry.knows_forms else "any that fits, in the order given"
    facts = [("what it does", entry.summary), ("runs on", where), ("forms", forms)]
    console.print_facts(name, facts)
    console.print_text("")
    if not entry.options:
        console.print_text(f"{name} has no options.")
        return
    for option in entry.options.values():
        kind, default = kind_of(option), _default(option.default)
        console.print_text(f"--set {name}.{option.name}=...  ({kind}; default {default})")
        if option.help:
            console.print_text(
                fill(f"{option.help}.", 80, initial_indent="    ", subsequent_indent="    ")
            )


def kind_of(option: Option) -> str:
    """The values that an option accepts, in words such as ``arrival, start, none``."""
    kind = without_none(option.kind)
    if get_origin(kind) is Literal:
        text = ", ".join(map(str, get_args(kind)))
    elif option.is_row:
        text = "numbers with commas between"
    else:
        text = WORDS[kind]
    return text if kind is option.kind else f"{text}; none"


def _default(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
