"""Kinds of files by their content alone, and the message for a wrong kind."""

from __future__ import annotations

from pathlib import Path

import pytest

import oasis
from oasis.model.file_kinds import (
    kind_of,
)
from oasis.model.instance_file import parse_json

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SWF = " ".join(["1", "0", "10", "7200", "4", *["-1"] * 13])
FILES = {
    "instance": (EXAMPLES / "congested.json").read_text(encoding="utf-8"),
    "elastic": (EXAMPLES / "elastic.json").read_text(encoding="utf-8"),
    "prices": '{"format": "oasis-prices", "version": 1}',
    "run": '{"kind": "run", "policy": "fifo"}',
    "quote": '{"kind": "quote"}',
    "compare": '{"kind": "compare", "policies": {}, "format": "oasis-elastic-workload"}',
    "replay": '{"kind": "replay", "policies": {}, "format": "oasis-elastic-workload"}',
    "plain": "gpus,id,note,duration,submitted\n4,a,,60,0\n",
    "philly": "timestamp,duration,num_gpus,gpu_time,cluster\n",
    "openb": "name,cpu_milli,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n",
    "openb nodes": "sn,cpu_milli,memory_mib,gpu,model\n",
    "swf": f"; Version: 2\n; Computer: x\n\n{SWF}\n",
}
SACCT = {
    "--parsable2": "JobID|User|Submit|ElapsedRaw|State|AllocTRES\n1|ann|2024-03-01T08:00:00|9|C|\n",
    "--parsable": "JobIDRaw|Submit|Elapsed|\n",
    "commas": "JobID,Submit,State\n",
    "fixed width": "JobID           State     Elapsed\n------- --------- ---------\n",
    "no header": "17|ann|2024-03-01T08:00:00|7200|COMPLETED|gres/gpu=4\n",
    "an array": "17_3|2024-03-01T08:00:00|7200|gres/gpu=4\n",
    "--json": '{"meta": {"Slurm": {}}, "jobs": [{"job_id": 17}]}',
}


@pytest.mark.parametrize("name", FILES)
def test_a_kind_is_known_by_its_content(name: str) -> None:
    found = kind_of(FILES[name])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", SACCT)
def test_what_sacct_prints_is_known_however_it_was_asked(name: str) -> None:
    found = kind_of(SACCT[name])
    assert found is not None
    assert found.name == "slurm"


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "a,b\n1,2\n",
        '{"schedules": []}',
        '{"format": ["x"]}',
        "<html>\n",
        '{"jobs": 1}',
        "{",
        "[1, 2]",
        "null",
        "x = 5",
    ],
)
def test_what_is_nothing_known_is_not_guessed(text: str) -> None:
    assert kind_of(text) is None


def test_json_that_may_be_anything_is_parsed() -> None:
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]
    with pytest.raises(oasis.InstanceError, match=r"^expected UTF-8 text"):
        parse_json(b'["\xff"]')
