"""Tables of well-known traces, with known columns (docs/traces)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oasis.traces.plain_instance import TableFormat, table_trace
from oasis.traces.table import MalformedError

# Both tables of the Shanghai AI Laboratory's clusters have the run itself, from start to end. Its
# column `duration` is not used: in Kalos it is the time from submission to end.
_RUN = {"started": "start_time", "ended": "end_time", "owner": "user", "state": "state"}
_HELIOS = {"id": "job_id", "submitted": "submit_time", "gpus": "gpu_num", **_RUN}
_HEADER = ("job_id", "gpu_num", "node_num", "submit_time", "start_time", "end_time")
HELIOS = table_trace(
    "helios",
    {"trace": "SenseTime Helios (SC 2021)"},
    TableFormat({**_HELIOS, "virtual_cluster": "vc"}, is_dated=True),
    looks="a job table of the Helios trace",
    header=(*_HEADER, "vc"),
)
ACME = table_trace(
    "acme",
    {"trace": "AcmeTrace (NSDI 2024)"},
    TableFormat(_HELIOS, is_dated=True),
    looks="a job table of AcmeTrace",
    header=(*_HEADER, "type"),
)
TIRESIAS = table_trace(
    "tiresias",
    {"trace": "jobs of Tiresias's simulator (NSDI 2019)"},
    TableFormat(
        {"id": "job_id", "submitted": "submit_time", "duration": "duration", "gpus": "num_gpu"}
    ),
    looks="a job table of Tiresias's simulator",
    header=("job_id", "num_gpu", "submit_time", "model_name", "duration"),
)

# Numbers of resources in the data set's own list: two types of GPUs.
SUPERCLOUD_GPUS = ("1001", "1002")
ENTRY = re.compile(r"([0-9]+)=([0-9]+)")
SLURM_STATES: Mapping[str, str] = dict(  # by their numbers in Slurm's database
    zip(
        map(str, range(12)),
        (
            *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
            *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
        ),
        strict=True,
    )
)


def numbered_gpus(text: str) -> tuple[float, bool]:
    """GPUs in a list of resources by number, which are whole; one that is not there is none."""
    found = [ENTRY.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not all(found):
        expected = "a list such as 1=40,2=170000,1002=2"
        raise MalformedError("bad tres_alloc", expected=expected)
    return sum(int(entry[2]) for entry in found if entry and entry[1] in SUPERCLOUD_GPUS), False


SUPERCLOUD = table_trace(
    "supercloud",
    {"trace": "MIT Supercloud (HPEC 2021)"},
    TableFormat(
        {
            **{"id": "id_job", "submitted": "time_submit", "eligible": "time_eligible"},
            **{"started": "time_start", "ended": "time_end", "gpus": "tres_alloc"},
            **{"owner": "id_user", "state": "state"},
        },
        is_dated=True,
        gpus=numbered_gpus,
        states=SLURM_STATES,
    ),
    looks="the Slurm log of MIT Supercloud",
    header=("id_job", "time_submit", "time_start", "time_end", "tres_alloc"),
)
