"""Instances from public cluster traces (docs/traces)."""

from oasis.traces.mapping import MachineOptions
from oasis.traces.openb import OpenbOptions, read_openb
from oasis.traces.philly import PhillyOptions, read_philly
from oasis.traces.plain import PlainTrace, read_philly_plain, read_plain
from oasis.traces.plain_instance import PlainOptions, read_plain_instance
from oasis.traces.slurm import SlurmOptions, read_slurm
from oasis.traces.swf import SwfOptions, read_swf
from oasis.traces.table import malformed_lines, malformed_sentences

__all__ = [
    "MachineOptions",
    "OpenbOptions",
    "PhillyOptions",
    "PlainOptions",
    "PlainTrace",
    "SlurmOptions",
    "SwfOptions",
    "malformed_lines",
    "malformed_sentences",
    "read_openb",
    "read_philly",
    "read_philly_plain",
    "read_plain",
    "read_plain_instance",
    "read_slurm",
    "read_swf",
]
