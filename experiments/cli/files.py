"""Files that commands write: none is a file that the same command reads.

A parameter that names an output is marked as `Written`; whatever else names a file is read. All
outputs of a command are checked before its work.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from typer.models import ArgumentInfo

from experiments.cli.streams import STANDARD_OUTPUT
from oasis.model.errors import InputError
from oasis.model.file_kinds import STANDARD_INPUT
from oasis.model.files import check_writable, is_standard_output

T = TypeVar("T")
Given = Mapping[str, Any]  # values by parameter
PAGE = (".html", ".htm")
ENDINGS = (  # of kinds of files; others, such as those of mktemp, name no kind
    *PAGE,
    *(".json", ".csv", ".tsv", ".parquet", ".xlsx", ".md", ".tex", ".toml", ".yaml", ".yml"),
    *(".pdf", ".png", ".svg", ".jpg", ".jpeg", ".eps", ".gz", ".bz2", ".xz", ".zst", ".zip"),
    *(".py", ".ipynb", ".mplstyle"),
)


def _itself(path: Path | None, _: Given) -> Iterable[Path]:
    return () if path is None else (path,)


def _check_picture(path: Path) -> object:
    from experiments.plotting import check_picture  # noqa: PLC0415 (needs an extra)

    return check_picture(path)


@dataclass(frozen=True, slots=True)
class Written:
    """Marks a parameter that names what the command writes."""

    what: str  # for messages
    endings: tuple[str, ...] = ()  # of names of this kind
    is_text: bool = True  # and may go to standard output
    check: Callable[[Path], object] = check_writable  # raises if it cannot be written
    files: Callable[[Any, Given], Iterable[Path]] = _itself


JSON = Written("JSON", (".json",))
HTML = Written("a page", PAGE)
PAGE_OR_JSON = Written("a page or JSON", (*PAGE, ".json"))
PICTURE = Written("a picture", is_text=False, check=_check_picture)
TABLE = Written("a table", (".parquet",), is_text=False)
CSV = Written("CSV", (".csv",), is_text=False)
# A directory is made by the work, and files in it that the command did not make stay.
DIRECTORY = Written("a directory", is_text=False, check=lambda _: None, files=lambda *_: ())


def is_stdout(path: Path | None) -> bool:
    """Return whether ``-o`` means standard output: by ``-``, or by the file that it is."""
    return path is not None and (str(path) == "-" or is_standard_output(path))


def mark_of(parameter: inspect.Parameter, kind: type[T]) -> T | None:
    """Return the mark of type `kind` in a parameter's annotation; None if there is none."""
    marks = getattr(parameter.annotation, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def spelling(parameter: inspect.Parameter) -> str:
    """Return how users know a parameter: by its flag, or by what the help calls the argument."""
    info = next(iter(getattr(parameter.annotation, "__metadata__", ())), None)
    if isinstance(info, ArgumentInfo):
        return str(info.metavar or parameter.name.upper())
    # The first of several spellings is what typer calls the default.
    spelled = getattr(info, "default", None)
    flag = f"--{parameter.name.replace('_', '-')}"
    return spelled if isinstance(spelled, str) and spelled.startswith("-") else flag


# Of the command that runs: by what its files are known, the flag and the name of each.
_outputs: ContextVar[Mapping[Hashable, tuple[str, str]]] = ContextVar("outputs")


def reading(path: Path) -> Path:
    """Return `path`, which is to be read; raise if it is an output of the command."""
    if (output := _outputs.get({}).get(_identity(path))) is not None:
        raise _overwrites(*output, str(path))
    return path


@contextmanager
def reserved(parameters: Mapping[str, inspect.Parameter], arguments: Given) -> Iterator[None]:
    """Check that all outputs can be written; inside, `reading` one of them raises an error."""
    former = _outputs.set(_reserved(parameters, arguments))
    try:
        yield
    finally:
        _outputs.reset(former)


def _reserved(
    parameters: Mapping[str, inspect.Parameter], arguments: Given
) -> dict[Hashable, tuple[str, str]]:
    """Return the outputs of a command by file; raise if one is unwritable, double or an input."""
    outputs: dict[Hashable, tuple[str, str]] = {}
    for name, parameter in parameters.items():
        if (mark := mark_of(parameter, Written)) is None:
            continue
        value = arguments[name]
        for path in (value,) if is_stdout(value) else mark.files(value, arguments):
            _check(spelling(parameter), path, mark)
            identity = STANDARD_OUTPUT if is_stdout(path) else _identity(path)
            if identity is not None and identity in outputs:
                raise InputError(
                    spelling(parameter), f"expected another file than {outputs[identity][0]}", path
                )
            outputs[identity] = spelling(parameter), str(path)
    # Last, because -o may name it, too.
    outputs[_status_key(1)] = STANDARD_OUTPUT, STANDARD_OUTPUT
    outputs.pop(None, None)
    for name, parameter in parameters.items():
        for path in () if mark_of(parameter, Written) else _words(arguments[name]):
            identity = _status_key(0 if str(path) == STANDARD_INPUT else path)
            if identity is not None and identity in outputs:
                raise _overwrites(*outputs[identity], f"{spelling(parameter)} {path}")
    return outputs


def _overwrites(flag: str, path: str, other: str) -> InputError:
    return InputError(flag, f"expected another file than {other}, which it would overwrite", path)


def _check(flag: str, path: Path, kind: Written) -> None:
    if is_stdout(path):
        if not kind.is_text:
            expected = "expected a name for what is written"
            raise InputError(flag, f"{expected}, got {STANDARD_OUTPUT}, {path}")
        return
    kind.check(path)
    if kind.endings and path.suffix.lower() in {*ENDINGS} - {*kind.endings}:
        expected = f"expected {' or '.join(kind.endings)}, as {kind.what} is written"
        raise InputError(flag, expected, str(path))


def _words(value: Any) -> Iterator[Path]:
    """Yield paths that a value may name: ``P.OPTION=FILE``, ``FILE.py:NAME``, also with commas."""
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, Path):
            yield each
        elif isinstance(each, str):
            parts = (each, each.partition("=")[2], *each.split(","))
            for name in (*parts, *(part.rpartition(":")[0] for part in parts)):
                # A plain word, such as that of a policy, is no file of this name.
                if Path(name).suffix or os.sep in name:
                    yield Path(name)


def _identity(path: Path) -> Hashable | None:
    """Return a key that is equal for all names of one regular file; None for pipes and devices."""
    if os.path.exists(path):
        return _status_key(path)
    real = Path(os.path.realpath(path))
    # Two outputs whose names differ in case alone are one file on some systems.
    return real.parent, real.name.casefold()


def _status_key(path: Path | int) -> Hashable | None:
    """Return device and number of a regular file; None for anything else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
