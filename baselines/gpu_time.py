"""GPUs that a job holds, by which time is weighed."""

from __future__ import annotations

from oasis.scheduling import PolicyJob, Site


class Gpus:
    """GPUs of a job with so many workers; its workers where it needs no GPU.

    Parameters
    ----------
    site : Site
        Which says whether there are GPUs at all.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> gpus = Gpus(Site(("gpu", "cpu"), (Machine("n0", (4.0, 8.0)),)))
    >>> gpus.of(PolicyJob("a", 0.0, 1.0, ((0, 2),), max_workers=3), 3)
    6.0
    >>> gpus.of(PolicyJob("b", 0.0, 1.0, ((1, 2),), max_workers=3), 3)
    3.0
    """

    def __init__(self, site: Site) -> None:
        self._resource = site.resources.index("gpu") if "gpu" in site.resources else None
        self._grid = site.grid

    def of(self, job: PolicyJob, workers: int) -> float:
        """GPUs of `job` with `workers`."""
        if self._resource is None:
            return float(workers)
        return workers * (dict(job.worker).get(self._resource, 0) / self._grid or 1.0)
