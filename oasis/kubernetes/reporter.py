"""For training processes: tells the controller how far the training of a job is."""

from __future__ import annotations

import math
import os
from pathlib import Path

from oasis.kubernetes import names
from oasis.kubernetes.api.connection import Connection
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.model.errors import InputError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Reporter:
    """Writes progress and loss into the annotations of the pod that it runs in.

    The service account of the pod needs the right to patch pods. One process of a job is enough;
    of several, the one that reports most progress is believed.

    Parameters
    ----------
    objects : Objects
        Writes to the API server.
    namespace, pod : str
        Of the pod.

    Examples
    --------
    >>> class Printing:
    ...     def merge_patch(self, kind, body):
    ...         print(sorted(body["metadata"]["annotations"].items()))
    >>> Reporter(Printing(), "research", "bert-w0").report(120.0, loss=0.31)
    [('oasis-scheduler.io/loss', '0.31'), ('oasis-scheduler.io/progress', '120')]
    """

    def __init__(self, objects: Objects, namespace: str, pod: str) -> None:
        self._objects, self._namespace, self._pod = objects, namespace, pod

    @classmethod
    def in_pod(cls) -> Reporter:
        """For the pod that this process runs in: its service account, and its name.

        The name is that of the environment variable POD_NAME, else the host name.

        Raises
        ------
        OasisError
            If this is no pod.
        """
        if not ACCOUNT.is_file():
            raise InputError(str(ACCOUNT), "expected the service account of a pod, found none")
        name = os.environ.get("POD_NAME") or os.uname().nodename
        return cls(Objects(Connection.open()), ACCOUNT.read_text().strip(), name)

    def report(self, worker_seconds: float | None = None, loss: float | None = None) -> None:
        """Tell what is known.

        Parameters
        ----------
        worker_seconds : float, optional
            Work that the whole job has done, in the unit of its ``spec.work``.
        loss : float, optional
            The evaluation function now; SpeCon moves jobs whose loss hardly changes any more.

        Raises
        ------
        ValueError
            If a number is not finite, or the work is negative.
        ApiError
            If the pod is gone, or the rights are missing.
        """
        notes = {}
        if worker_seconds is not None:
            if not 0 <= worker_seconds < math.inf:
                expected = f"expected seconds >= 0, got {worker_seconds}"
                raise InputError("worker_seconds", expected)
            notes[names.PROGRESS] = f"{worker_seconds:.6f}".rstrip("0").rstrip(".")
        if loss is not None:
            if not math.isfinite(loss):
                raise InputError("loss", "expected a finite number", loss)
            # `repr` loses no digit: SpeCon compares losses that differ little.
            notes[names.LOSS] = repr(float(loss))
        meta = {"namespace": self._namespace, "name": self._pod, "annotations": notes}
        self._objects.merge_patch(PODS, {"metadata": meta})
