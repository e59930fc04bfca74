"""Instances from public cluster traces (docs/traces)."""

from oasis.traces.openb import read_openb
from oasis.traces.openb_options import OpenbOptions
from oasis.traces.philly import PhillyOptions, read_philly
from oasis.traces.plain import PlainTrace, read_philly_plain, read_plain
from oasis.traces.table import malformed_lines, malformed_sentences

__all__ = [
    "OpenbOptions",
    "PhillyOptions",
    "PlainTrace",
    "malformed_lines",
    "malformed_sentences",
    "read_openb",
    "read_philly",
    "read_philly_plain",
    "read_plain",
]
