"""What comes with the package: its examples, schemas and policies, and what is installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill, indent
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from experiments.cli import console
from experiments.cli.files import Written
from experiments.cli.options import A_POLICY, AsJson, PrintedFile, ResultFile, among, known_policy
from experiments.cli.results import deliver, hand_out
from experiments.evaluation.policies import INSTALLED, POLICIES, PolicyEntry, entry_of
from experiments.options import Option
from oasis.extras import EXTRAS
from oasis.model.choices import choice
from oasis.model.errors import InputError
from oasis.model.examples import EXAMPLES, example_text
from oasis.model.files import json_text
from oasis.model.instance_file import instance_schema
from oasis.scheduling.policy import wants
from oasis.simulator.elastic import elastic_schema
from oasis.version import __version__


def example(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=among(EXAMPLES),
            help="Name of the example. Without it, all are listed.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        "File to write; -: standard output. [default: standard output]",
        Written("an example"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the examples that come with the package, or write one of them.

    Example: oasis example congested -o congested.json
    """
    if name is None:
        if output is not None:
            raise InputError("-o", "expected the NAME of an example beside it")
        listed = {
            each: {"file": one.file, "about": one.about, "try": f"oasis {one.command}"}
            for each, one in EXAMPLES.items()
        }
        rows = [(each, one["about"], one["try"]) for each, one in listed.items()]
        columns = console.headings("name", "what it is", "try")
        document = {"examples": listed, "version": __version__}
        deliver(document, lambda: console.print_rows(columns, rows), as_json=as_json)
        return
    if as_json:
        raise InputError("--json", "lists the examples, expected no NAME beside it")
    name = choice(name, EXAMPLES, "NAME")
    hand_out(example_text(name), output, EXAMPLES[name].about)


SCHEMAS = {"instance": instance_schema, "workload": elastic_schema}


def schema(
    kind: Annotated[
        Literal["instance", "workload"], typer.Argument(metavar="KIND", help="Kind of file.")
    ] = "instance",
    output: PrintedFile = None,
) -> None:
    """Print the JSON Schema of an instance file, or of a workload of elastic jobs.

    With the schema, an editor checks and completes such a file as you write it.

    Example: oasis schema workload -o workload.schema.json
    """
    hand_out(json_text(SCHEMAS[kind]()), output, f"the schema of files of kind {kind}")


WORDS = {bool: "true, false", int: "integer", float: "number", str: "text"}


def policies(
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
        "version": __version__,
    }

    def show() -> None:
        if name is None:
            _list_policies(entries)
        else:
            _explain(*next(iter(entries.items())))  # under its own name, not as it was typed

    deliver(document, show, as_json=as_json, output=output)


def _document(entry: PolicyEntry) -> dict[str, Any]:
    return {
        "summary": entry.summary,
        "needs_instance": entry.needs_instance,
        "knows_forms": wants(entry.policy, "knows_forms"),
        "options": {
            name: {"type": kind_of(option), "default": option.default, "help": option.help}
            for name, option in entry.options.items()
        },
    }


def _list_policies(entries: dict[str, PolicyEntry]) -> None:
    rows = [
        (name, ", ".join(entry.options) or "-", entry.summary) for name, entry in entries.items()
    ]
    console.print_rows(console.headings("policy", "options", "what it does"), rows)
    console.print_text(
        "\noasis policies NAME explains its options; --set NAME.OPTION=VALUE sets one."
    )


def _explain(name: str, entry: PolicyEntry) -> None:
    where = "instances alone" if entry.needs_instance else "instances, plain traces and workloads"
    forms = (
        "chooses one of a job's"
        if wants(entry.policy, "knows_forms")
        else "any that fits, in the order given"
    )
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
            console.print_text(indent(fill(f"{option.help}.", 76), "    "))


def kind_of(option: Option) -> str:
    """Return the values that an option accepts, in words such as ``arrival, start, none``."""
    kind = option.plain
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


DISTRIBUTIONS = {"yaml": "PyYAML", "prometheus_client": "prometheus-client"}


def show_versions(as_json: AsJson = False) -> None:
    """Print the versions of Python, of this package and of what it uses.

    Copy it into a report of a bug. What is not installed has a dash, and the extra that brings it.

    Example: oasis show-versions
    """
    versions = {
        "oasis-scheduler": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "numpy": installed("numpy"),
        **{package: installed(DISTRIBUTIONS.get(package, package)) for package in EXTRAS},
    }
    facts = [
        (name, seen or (f"- (extra {EXTRAS[name]})" if name in EXTRAS else "-"))
        for name, seen in versions.items()
    ]
    deliver(versions, lambda: console.print_facts("Versions", facts), as_json=as_json)


def installed(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
