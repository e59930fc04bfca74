"""Files and streams of commands: no output is a file that is read, a stream may be closed."""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import oasis
from experiments.cli import files as cli_files
from experiments.cli.command import as_command
from experiments.cli.main import main
from experiments.cli.streams import ESCAPED, encodable, naming_output, open_streams
from experiments.plotting import FORMATS
from oasis.model.errors import InputError
from oasis.model.instance_file import instance_from_dict
from tests.packaging.commands import EXAMPLE, ROOT, SMALL
from tests.unit.experiments.conftest import Call
from tests.unit.experiments.test_commands import every_command

CONTENT = b"what a user wrote"


COMMANDS = {
    context.command_path.removeprefix("oasis "): dict(inspect.signature(one.callback).parameters)
    for one, context in every_command()
    if not hasattr(one, "commands") and one.name != "help"
}
OUTPUTS = [
    (name, output.name)
    for name, parameters in COMMANDS.items()
    for output in parameters.values()
    if cli_files.mark_of(output, cli_files.Written)
]
PAIRS = [
    (name, read.name, output)
    for name, output in OUTPUTS
    for read in COMMANDS[name].values()
    if "Path" in str(read.annotation) and cli_files.mark_of(read, cli_files.Written) is None
]


def refused(call: Call, *words: object) -> str:
    code, out, err = call("", *words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


def words_of(command: str, values: dict[str, object]) -> list[str]:
    """The words of a command: these values, and anything for what it must have besides."""
    arguments, options = [], []
    for parameter in COMMANDS[command].values():
        if parameter.annotation is typer.Context:
            continue
        flag = cli_files.spelling(parameter)
        value = values.get(parameter.name)
        if value is None and parameter.default is inspect.Parameter.empty:
            value = parameter.name
        if value is not None:
            is_option = flag.startswith("-")
            (options if is_option else arguments).extend([flag, value] if is_option else [value])
    return [*command.split(), *map(str, (*arguments, *options))]


def output_of(name: str, output: str) -> tuple[str, list[Path]]:
    """A value for an output of a command, and the files that the command then writes."""
    mark = cli_files.mark_of(COMMANDS[name][output], cli_files.Written)
    assert mark is not None
    value = "out" + (mark.endings or tuple(FORMATS))[0]
    given = dict.fromkeys(COMMANDS[name]) | {"form": "svg", "name": "congested"}
    return value, list(mark.files(Path(value), given))


def test_every_output_of_every_command_is_marked():
    assert len(COMMANDS) > 40
    for name, parameters in COMMANDS.items():
        for parameter in parameters.values():
            if cli_files.spelling(parameter) in ("-o", "--output", "--plot", "--csv"):
                assert cli_files.mark_of(parameter, cli_files.Written), (
                    f"{name} {cli_files.spelling(parameter)}"
                )
    assert {"run", "sweep", "kubernetes report", "import pai"} <= {name for name, _ in OUTPUTS}


@pytest.mark.parametrize(("name", "read", "output"), PAIRS)
def test_no_output_is_a_file_that_the_command_reads(name, read, output, call):
    value, files = output_of(name, output)
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(CONTENT)
        given = {"name": "congested", output: value, read: file}
        flag = cli_files.spelling(COMMANDS[name][output])
        other = f"{cli_files.spelling(COMMANDS[name][read])} {file}"
        expected = f"oasis: {flag}: expected another file than {other}, which it would overwrite"
        assert expected in refused(call, *words_of(name, given))
        assert file.read_bytes() == CONTENT


def links(path: Path) -> Iterator[Path]:
    """Other names of the file `path`."""
    (path.parent / "symbolic.json").symlink_to(path.name)
    yield path.parent / "symbolic.json"
    os.link(path, path.parent / "hard.json")
    yield path.parent / "hard.json"
    (path.parent / "folder").mkdir()
    yield path.parent / "folder" / ".." / path.name


def test_other_names_of_a_file_are_the_same_file(call):
    path = Path("i.json")
    path.write_bytes(CONTENT)
    for other in links(path):
        for words in (("run", path, "-o", other), ("run", other, "-o", path)):
            assert "-o: expected another file than FILE" in refused(call, *words)
    assert path.read_bytes() == CONTENT


def test_standard_streams_are_files_too(tmp_path):
    """`oasis run - -o i.json < i.json`, and `oasis run i.json >> i.json`."""

    def command(file: Path, output: Annotated[Path | None, cli_files.JSON] = None) -> None:
        raise AssertionError((file, output))

    path = tmp_path / "i.json"
    path.write_bytes(CONTENT)
    for number, both in ((0, (Path("-"), path)), (1, (path, None))):
        kept = os.dup(number)
        with path.open("r+b") as stream:
            os.dup2(stream.fileno(), number)
        try:
            with pytest.raises(InputError, match="expected another file than"):
                as_command(command)(**dict(zip(("file", "output"), both, strict=True)))
        finally:
            os.dup2(kept, number)
            os.close(kept)


def test_devices_are_no_files_that_could_be_lost():
    seen: list[Any] = []

    def command(file: Path, output: Annotated[Path, cli_files.JSON]) -> None:
        seen.append((file, output))

    as_command(command)(file=Path(os.devnull), output=Path(os.devnull), verbose=False)
    assert seen


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda name: name.strip() == name and name.isprintable()
)
SHOWN = (("describe",), ("run",), ("compare", "--policies", "fifo,oasis"))


class Kept(io.BytesIO):
    """Can be read when the stream that writes into it is gone."""

    def close(self) -> None:
        pass


@settings(max_examples=5, phases=[Phase.generate])
@given(NAMES, st.sampled_from(["ascii", "latin-1", "cp437", "utf-8"]))
def test_any_id_goes_through_any_encoding_and_no_table_is_cut(tmp_path_factory, name, encoding):
    assert "45\xa0min".encode("ascii", ESCAPED) == b"45 min"
    path = tmp_path_factory.mktemp("streams") / "i.json"
    second = SMALL["jobs"][1]
    oasis.write(
        instance_from_dict({**SMALL, "jobs": [SMALL["jobs"][0] | {"id": name}, second]}), path
    )
    for command, *options in SHOWN:
        raw = Kept()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
            with pytest.raises(SystemExit, match=r"^0$"):
                main([command, str(path), *options])
            shown = encodable(name)
        text = raw.getvalue().decode(encoding)
        assert text.endswith("\n")
        if command == "run":
            rows = [line for line in text.splitlines() if line.startswith((shown, "b "))]
            assert len(rows) == 2, "both decisions"
            assert shown == name.encode(encoding, ESCAPED).decode(encoding)
            # Columns are below each other: what is escaped is as wide as it is laid out.
            begins = {cell_len(row[: row.index("slot ")]) for row in rows}
            assert len(begins) == 1


@pytest.mark.parametrize(
    ("words", "where", "buffered"),
    [
        ("--version", ">/dev/full", "1"),
        ("run --help", ">/dev/full", ""),
        ("run FILE", ">/dev/full", "1"),
        ("run FILE --json", ">/dev/full", ""),
        ("run FILE", ">&-", ""),
    ],
)
def test_a_full_or_closed_standard_output_is_one_line_and_2(words, where, buffered):
    if not Path("/dev/full").is_char_device():
        pytest.skip("needs /dev/full, which is only opened")
    said = "standard output: No space left on device"
    if where == ">&-":
        said = "standard output is closed; expected it to be open"
    command = words.replace("FILE", f"'{EXAMPLE}'")
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m oasis {command} {where}"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": buffered},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"oasis: {said}\n")


def test_a_closed_standard_error_takes_no_file_and_other_errors_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert open_streams()
    with sys.stderr:
        assert os.path.samestat(os.fstat(sys.stderr.fileno()), os.stat(os.devnull))
    with pytest.raises(OSError, match="of a socket") as raised, naming_output(is_certain=False):
        raise OSError(9, "of a socket")
    assert raised.value.filename is None
