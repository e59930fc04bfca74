"""Instances from public cluster traces (docs/traces)."""

from oasis.traces.job_table import OPTIONS, MachineOptions, PlainTrace
from oasis.traces.plain import read_instance, read_plain
from oasis.traces.table import malformed_sentences

OpenbOptions = OPTIONS["OpenbOptions"]
PhillyOptions = OPTIONS["PhillyOptions"]
PlainOptions = OPTIONS["PlainOptions"]
SlurmOptions = OPTIONS["SlurmOptions"]
SwfOptions = OPTIONS["SwfOptions"]
# Each has the name of a class of this module, by which it is pickled.
globals().update(OPTIONS)

__all__ = [
    "MachineOptions",
    "OpenbOptions",
    "PhillyOptions",
    "PlainOptions",
    "PlainTrace",
    "SlurmOptions",
    "SwfOptions",
    "malformed_sentences",
    "read_instance",
    "read_plain",
]
