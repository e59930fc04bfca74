"""Standard streams that are closed, full, or cannot encode what is printed."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import oasis
from experiments.cli.main import main
from experiments.cli.streams import ESCAPED, encodable, naming_output, open_streams
from experiments.evaluation.tables import run_facts
from oasis.model.instance_file import instance_from_dict
from oasis.scheduling import BasePolicy, Plan
from tests.packaging.commands import EXAMPLE, ROOT, SMALL

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda name: name.strip() == name and name.isprintable()
)
COMMANDS = (("describe",), ("run",), ("compare", "--policies", "fifo,oasis"))


def test_the_space_before_a_unit_stays_a_space() -> None:
    assert "45\xa0min".encode("ascii", ESCAPED) == b"45 min"
    assert "\u03b1".encode("ascii", ESCAPED) == rb"\u03b1"


class Kept(io.BytesIO):
    """Can be read when the stream that writes into it is gone."""

    def close(self) -> None:
        pass


@settings(max_examples=5, phases=[Phase.generate])
@given(NAMES, st.sampled_from(["ascii", "latin-1", "cp437", "utf-8"]))
def test_any_id_goes_through_any_encoding_and_no_table_is_cut(
    tmp_path_factory: pytest.TempPathFactory, name: str, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("streams") / "i.json"
    second = SMALL["jobs"][1]
    oasis.write(
        instance_from_dict({**SMALL, "jobs": [SMALL["jobs"][0] | {"id": name}, second]}), path
    )
    for command, *options in COMMANDS:
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
def test_a_full_or_closed_standard_output_is_one_line_and_2(
    words: str, where: str, buffered: str
) -> None:
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


def test_a_closed_standard_error_takes_no_file_and_other_errors_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert open_streams()
    with sys.stderr:
        assert os.path.samestat(os.fstat(sys.stderr.fileno()), os.stat(os.devnull))
    with pytest.raises(OSError, match="of a socket") as raised, naming_output(is_certain=False):
        raise OSError(9, "of a socket")
    assert raised.value.filename is None


class Idle(BasePolicy):
    """Starts nothing."""

    def decide(self, view: Any) -> Plan:
        return Plan()


def test_a_run_in_which_no_job_ever_held_a_worker_says_so() -> None:
    run = oasis.simulate(oasis.read(EXAMPLE), Idle())
    facts = dict(run_facts(run, {}))
    assert facts["total utility"] == "0"
    expected = r"12 of 12 admitted jobs, which earn nothing: no job ever ran"
    assert re.fullmatch(expected, facts["did not finish"])
    some = oasis.simulate(oasis.read(EXAMPLE), oasis.Recourse.from_instance(oasis.read(EXAMPLE)))
    assert "no job ever ran" not in str(run_facts(some, {}))


def test_a_list_that_a_policy_reports_has_no_brackets() -> None:
    instance = oasis.read(EXAMPLE)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    told = replace(run, report={"given_up_after_start": ["j5", "j9"], "plans": 3})
    facts = run_facts(told, {})
    assert ("given up after start", "j5, j9") in facts
    assert ("plans", "3") in facts
