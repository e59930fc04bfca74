"""Tables of well-known traces, with known columns (docs/traces)."""

from __future__ import annotations

import re

from oasis.traces.plain_instance import TableFormat, table_trace
from oasis.traces.table import MalformedError

# Both tables of the Shanghai AI Laboratory's clusters have the run itself, from start to end. Its
# column `duration` is not used: in Kalos it is the time from submission to end.
_HELIOS = {
    "id": "job_id",
    "submitted": "submit_time",
    "started": "start_time",
    "ended": "end_time",
    "gpus": "gpu_num",
    "owner": "user",
    "state": "state",
}
HELIOS = table_trace(
    "helios",
    {"trace": "SenseTime Helios (SC 2021)"},
    TableFormat({**_HELIOS, "virtual_cluster": "vc"}, is_dated=True),
)
ACME = table_trace(
    "acme",
    {"trace": "AcmeTrace (NSDI 2024)"},
    TableFormat(_HELIOS, is_dated=True),
)
TIRESIAS = table_trace(
    "tiresias",
    {"trace": "jobs of Tiresias's simulator (NSDI 2019)"},
    TableFormat(
        {"id": "job_id", "submitted": "submit_time", "duration": "duration", "gpus": "num_gpu"}
    ),
)

# Numbers of resources in the data set's own list: two types of GPUs.
SUPERCLOUD_GPUS = ("1001", "1002")
ENTRY = re.compile(r"([0-9]+)=([0-9]+)")
SLURM_STATES = (  # by their numbers in Slurm's database
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
    *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)


def numbered_gpus(text: str, column: str) -> int:
    """GPUs in a list of resources by number; one that is not there is none.

    Examples
    --------
    >>> numbered_gpus("1=40,2=170000,4=2,1002=4", "tres_alloc"), numbered_gpus("1=8", "tres_alloc")
    (4, 0)
    """
    found = [ENTRY.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not all(found):
        raise MalformedError(f"bad {column}", expected="a list such as 1=40,2=170000,1002=2")
    return sum(int(entry[2]) for entry in found if entry and entry[1] in SUPERCLOUD_GPUS)


SUPERCLOUD = table_trace(
    "supercloud",
    {"trace": "MIT Supercloud (HPEC 2021)"},
    TableFormat(
        {
            "id": "id_job",
            "submitted": "time_submit",
            "started": "time_start",
            "ended": "time_end",
            "gpus": "tres_alloc",
            "owner": "id_user",
            "state": "state",
        },
        is_dated=True,
        gpus=numbered_gpus,
        states={str(number): word for number, word in enumerate(SLURM_STATES)},
    ),
)
