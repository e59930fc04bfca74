"""No output of any command is a file that it reads, and each ends as what is written into it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from experiments.cli.app import COMMANDS as NAMES
from experiments.cli.app import oasis_command
from experiments.cli.command import as_command
from experiments.cli.files import (
    JSON,
    Written,
    mark_of,
    spelling,
)
from experiments.cli.main import main
from experiments.plotting import FORMATS
from oasis.model.errors import InputError

Captured = pytest.CaptureFixture[str]
Parameters = dict[str, inspect.Parameter]
CONTENT = b"what a user wrote"


def commands(group: Any, place: str = "") -> Iterator[tuple[str, Parameters]]:
    """Words of each command but `help`, and its parameters."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        elif name != "help":
            yield f"{place}{name}", dict(inspect.signature(command.callback).parameters)


COMMANDS = dict(commands(oasis_command(*NAMES)))
OUTPUTS = [
    (name, output.name)
    for name, parameters in COMMANDS.items()
    for output in parameters.values()
    if mark_of(output, Written)
]
PAIRS = [
    (name, read.name, output)
    for name, output in OUTPUTS
    for read in COMMANDS[name].values()
    if "Path" in str(read.annotation) and mark_of(read, Written) is None
]


def refused(capsys: Captured, *words: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1), err
    return err


def words_of(command: str, values: dict[str, object]) -> list[str]:
    """The words of a command: these values, and anything for what it must have besides."""
    arguments, options = [], []
    for parameter in COMMANDS[command].values():
        if parameter.annotation is typer.Context:
            continue
        flag = spelling(parameter)
        value = values.get(parameter.name)
        if value is None and parameter.default is inspect.Parameter.empty:
            value = parameter.name
        if value is not None:
            is_option = flag.startswith("-")
            (options if is_option else arguments).extend([flag, value] if is_option else [value])
    return [*command.split(), *map(str, (*arguments, *options))]


def output_of(name: str, output: str) -> tuple[str, list[Path]]:
    """A value for an output of a command, and the files that the command then writes."""
    mark = mark_of(COMMANDS[name][output], Written)
    assert mark is not None
    value = "out" + (mark.endings or tuple(FORMATS))[0]
    given = dict.fromkeys(COMMANDS[name]) | {"form": "svg", "name": "congested"}
    return value, list(mark.files(Path(value), given))


def test_every_output_of_every_command_is_marked() -> None:
    assert len(COMMANDS) > 40
    for name, parameters in COMMANDS.items():
        for parameter in parameters.values():
            if spelling(parameter) in ("-o", "--output", "--plot", "--csv"):
                assert mark_of(parameter, Written), f"{name} {spelling(parameter)}"
    assert {"run", "sweep", "kubernetes report", "import pai"} <= {name for name, _ in OUTPUTS}


@pytest.mark.parametrize(("name", "read", "output"), PAIRS)
def test_no_output_is_a_file_that_the_command_reads(
    name: str,
    read: str,
    output: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.chdir(tmp_path)
    value, files = output_of(name, output)
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(CONTENT)
        given = {"name": "congested", output: value, read: file}
        flag = spelling(COMMANDS[name][output])
        other = f"{spelling(COMMANDS[name][read])} {file}"
        expected = f"oasis: {flag}: expected another file than {other}, which it would overwrite"
        assert expected in refused(capsys, *words_of(name, given))
        assert file.read_bytes() == CONTENT


def links(path: Path) -> Iterator[Path]:
    """Other names of the file `path`."""
    (path.parent / "symbolic.json").symlink_to(path.name)
    yield path.parent / "symbolic.json"
    os.link(path, path.parent / "hard.json")
    yield path.parent / "hard.json"
    (path.parent / "folder").mkdir()
    yield path.parent / "folder" / ".." / path.name


def test_other_names_of_a_file_are_the_same_file(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "i.json"
    path.write_bytes(CONTENT)
    for other in links(path):
        assert "-o: expected another file than FILE" in refused(capsys, "run", path, "-o", other)
        assert "-o: expected another file than FILE" in refused(capsys, "run", other, "-o", path)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run x.json --bounds i.json -o i.json", "-o: expected another file than --bounds i.json"),
        ("run x.json --set oasis.bounds=i.json -o i.json", "than --set i.json"),
        ("run x.json --policy i.json:Mine -o i.json", "than --policy i.json"),
        ("sweep i.parquet", "-o: expected another file than CONFIG i.parquet"),
        ("sweep i.toml -o i.csv", "-o: expected .parquet, as a table is written"),
        ("learn x.json i.json -o i.json", "-o: expected another file than PAST.json... i.json"),
    ],
)
def test_what_else_would_cost_a_file(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("i.json", "i.parquet"):
        Path(name).write_bytes(CONTENT)
    assert said in refused(capsys, *words.split())
    assert all(Path(name).read_bytes() == CONTENT for name in ("i.json", "i.parquet"))


def test_an_instance_that_a_result_or_a_grid_names_is_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ("example congested -o i", "run i -o run.json"):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(words.split())
    Path("grid.toml").write_text('[[instances]]\nfile = "i"\n[[policies]]\nname = "drf"\n')
    capsys.readouterr()
    before = Path("i").read_bytes()
    for words in ("run --from run.json -o i", "report run.json -o i", "sweep grid.toml -o i"):
        assert "-o: expected another file than i, which it" in refused(capsys, *words.split())
    assert Path("i").read_bytes() == before


def test_standard_streams_are_files_too(tmp_path: Path) -> None:
    """`oasis run - -o i.json < i.json`, and `oasis run i.json >> i.json`."""

    def command(file: Path, output: Annotated[Path | None, JSON] = None) -> None:
        raise AssertionError((file, output))

    path = tmp_path / "i.json"
    path.write_bytes(CONTENT)
    for number, given in ((0, (Path("-"), path)), (1, (path, None))):
        kept = os.dup(number)
        with path.open("r+b") as stream:
            os.dup2(stream.fileno(), number)
        try:
            with pytest.raises(InputError, match="expected another file than"):
                as_command(command)(**dict(zip(("file", "output"), given, strict=True)))
        finally:
            os.dup2(kept, number)
            os.close(kept)


def test_devices_are_no_files_that_could_be_lost() -> None:
    seen: list[Any] = []

    def command(file: Path, output: Annotated[Path, JSON]) -> None:
        seen.append((file, output))

    run: Callable[..., Any] = as_command(command)
    run(file=Path(os.devnull), output=Path(os.devnull), verbose=False)
    assert seen
