"""What the importer of the openb trace assumes, one field for each assumption."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.traces.options import TraceOptions, option


@dataclass(frozen=True, slots=True)
class OpenbOptions(TraceOptions):
    """Assumptions about the openb trace, whose pods are read as training jobs.

    Examples
    --------
    >>> from oasis.traces import OpenbOptions
    >>> options = OpenbOptions(qos="BE", max_jobs=5)
    >>> options.horizon, options.worker_servers
    (20, 8)
    """

    slot_seconds: float = option(3600.0, "length of a slot in seconds", above=True)
    horizon: int = option(20, "number of slots T", minimum=1)
    min_duration: float = option(7200.0, "leave out pods that ran shorter, in seconds")
    max_duration: float = option(86400.0, "leave out pods that ran longer, in seconds")
    elasticity: float = option(
        4.0, "most workers at once, as a multiple of the recorded ones", above=True
    )
    qos: str = option(
        "", "take the pods of this service class alone, such as BE or LS", reading=True
    )
    worker_servers: int = option(8, "nodes for workers, spread evenly over the list", minimum=1)
    ps_servers: int = option(
        4, "nodes for parameter servers, spread evenly over the others", minimum=1
    )
    model: str = option("", "take the nodes with this GPU model alone, such as T4")
    max_node_gpus: int = option(2, "leave out nodes with more GPUs")
