"""The controller follows the cluster, asks the policy at each slot, and makes pods as planned."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from oasis.kubernetes.acting import described
from oasis.kubernetes.api.connection import ApiError, LostAnswerError, TooLateError
from oasis.kubernetes.api.lease import Lease
from oasis.kubernetes.api.resources import (
    CLASSES,
    NETWORK_POLICIES,
    NODES,
    OASIS_JOBS,
    PODS,
    SERVICES,
    WINDOWS,
    Followed,
    Objects,
)
from oasis.kubernetes.api.watching import ObjectStore, Watcher
from oasis.kubernetes.cluster.nodes import NodesError
from oasis.kubernetes.cluster.pods import claimed
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.memory import restore_controller
from oasis.kubernetes.control.meter import SteadyTime
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.existing import EXISTING, without_others
from oasis.kubernetes.objects.workload import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS
from oasis.scheduling.policy import Policy

log = logging.getLogger("oasis.kubernetes")

News = tuple[float, str, str, Any]  # when, kind of the object, event, and the object
SETTLE = 0.02  # seconds in which news gather, at least, before anything is done about them
PLAN_WAIT = 0.5  # seconds for which a plan is waited for before what else happens is seen to
AGAIN = 0.5  # seconds until a write that failed is tried again
LONGEST_PAUSE = 60.0  # seconds after an error of ours, at most
# Seconds that a turn may take before the controller counts as stuck. Planning for a large cluster
# takes minutes at worst, and whoever is ended for that begins the same plan again.
STUCK = 600.0
LOOK_AGAIN = 5.0  # seconds until nodes that were missing are looked for, unless one changes before


class Controller:
    """Schedules the jobs of a cluster with one policy, as ``oasis kubernetes run`` does.

    Parameters
    ----------
    objects : Objects
        The API server.
    policy : callable
        Makes the policy: at each takeover one is needed that was never used.
    settings : ControllerSettings
        What distinguishes this controller from another.
    identity : str
        Its name among the controllers that share a lease.
    metrics : Metrics, optional
        Of ``/metrics``; left out, fresh ones.
    now : callable, optional
        Tells the time in seconds since 1970, by which slots begin and work is counted. Left out, it
        is a clock that changes of the system time do not affect. Leases have their own time.

    Attributes
    ----------
    reconciler : Reconciler or None
        What it knows while it acts: slots, live jobs, statuses; None while it stands by.
    stores : dict
        The objects that it sees, by the plural of their kind.
    metrics : Metrics
        What it counts.

    Examples
    --------
    What `run` then does goes on until `stop` is called:

    >>> from kubernetes.client import Configuration
    >>> from baselines import FIFO
    >>> from oasis.kubernetes.api.connection import Connection
    >>> objects = Objects(Connection(Configuration("http://127.0.0.1:8001")))
    >>> controller = Controller(objects, FIFO, ControllerSettings(slot_seconds=300), "one")
    >>> controller.settings.controller
    'oasis-system/oasis-scheduler'
    """

    def __init__(
        self,
        objects: Objects,
        policy: Callable[[], Policy],
        settings: ControllerSettings,
        identity: str,
        metrics: Metrics | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.settings, self.stopping = settings, threading.Event()
        self.metrics, self._now = metrics or Metrics(), now or SteadyTime()
        self._objects, self._policy = objects, policy
        self._news: queue.Queue[News] = queue.Queue()
        self._followed = followed(settings)
        self.stores = {kind.plural: ObjectStore() for kind, _ in self._followed}
        self.watchers = [
            Watcher(
                *(objects, kind, partial(self._hear, kind.plural), self.stopping),
                *(where, self.stores[kind.plural]),
            )
            for kind, where in self._followed
        ]
        self.lease = Lease(
            objects.connection,
            settings.namespace,
            settings.name,
            identity,
            settings.lease_seconds,
            self.stopping,
            lambda held: self._hear("lease", str(held)),
        )
        # Once the lease has run out, another controller may act, and no write of ours begins.
        self._fenced = Objects(objects.connection, left=self.lease.left)
        writes = objects if objects.is_dry else self._fenced
        self.writer = ClusterWriter(writes, self.stores, self.metrics)
        self.reconciler: Reconciler | None = None
        self._try_at = 0.0  # when to look for nodes again
        self._said: dict[str, str] = {}  # last about each subject: nothing is said twice in a row
        self._troubles: frozenset[str] = frozenset()  # that were told last
        self._others: frozenset[str] = frozenset()  # uids of jobs that other controllers schedule
        self._errors = 0  # turns in a row that an error of ours ended
        self._busy = 0.0  # seconds of processor time that the last turn took
        self._turned = time.monotonic()  # when the last turn began

    def _hear(self, kind: str, event: str = "", item: Any = None) -> None:
        self._news.put((self._now(), kind, event, item))

    def stop(self) -> None:
        """Make `run` end after the step that is under way."""
        self.stopping.set()
        self._objects.connection.stopping.set()
        self._hear("stop")

    def stuck(self) -> str | None:
        """Return why the loop hangs, for the liveness probe; None if it runs."""
        silent = time.monotonic() - self._turned
        return f"the last turn began {silent:.0f} s ago" if silent > STUCK else None

    def unready(self) -> str | None:
        """Return why we can neither act nor stand by, for the readiness probe; else None."""
        watched = zip(self._followed, self.watchers, strict=True)
        missing = {kind.plural for (kind, _), watcher in watched if not watcher.synced.is_set()}
        if missing:
            return f"not listed yet: {', '.join(sorted(missing))}"
        if not self.lease.is_held and not self.lease.other:
            return "the lease is not ours, and nobody else is known to hold it"
        return "; ".join(sorted(self._troubles)) or None

    def rehearse(self) -> dict[str, Any]:
        """Return what a controller that started now would do, as plain data."""
        # The API server is asked about each write, so that refusals are among the answers.
        objects = self._objects.snapshot(self._followed)
        seen = Seen(without_others(objects, self.settings.controller)[0])
        reconciler = restore_controller(
            self._objects, self._policy, self.settings, self.metrics, seen, self._now
        )
        tries = reconciler.tries(seen, self._now())
        reconciler.learning.tried(tries, self.writer.try_out(tries), self._now())
        reconciler.plan_if_due(self._now(), lambda: seen)
        actions = reconciler.steps(seen, self._now()).actions
        reconciler.did(actions, self.writer.do(actions), self._now())
        self.writer.close()
        return {
            "slot": reconciler.driver.slot,
            "actions": [described(action) for action in actions],
            "jobs": {
                f"{job.meta['namespace']}/{job.meta['name']}": job.news[-1][2]
                for job in reconciler.statuses.values()
                if job.news
            },
        }

    def run(self, until: Callable[[Reconciler | None], bool] | None = None) -> None:
        """Act whenever the lease is ours, until `stop` is called or `until` says so.

        Parameters
        ----------
        until : callable, optional
            Called after each turn with the reconciler, which is None while another controller acts.
        """
        for watcher in self.watchers:
            watcher.start()
        self.lease.start()
        try:
            while not self.stopping.is_set():
                self._turn()
                if until is not None and until(self.reconciler):
                    break
        finally:
            self._leave()

    def _leave(self) -> None:
        # Writes under way end before the lease is released: after that another controller may act.
        self.writer.close()
        is_held = self.lease.is_held
        self.stopping.set()
        if is_held:
            # `stop` has cut short all pauses between attempts;
            # those of the release may take their time.
            self._objects.connection.stopping.clear()
            try:
                self.lease.release()
            except (ApiError, LostAnswerError) as error:
                log.warning("the lease could not be released: %s", error)
        self._objects.connection.stopping.set()

    def _turn(self) -> None:
        """Wait for changes or for the next boundary, then act on them."""
        self._turned = time.monotonic()
        reconciler, until = self.reconciler, self._now() + AGAIN
        # A boundary waits for a question that is still running, whose end is news.
        if reconciler is not None and reconciler.planning is None:
            until = reconciler.next_boundary
        news = self._gather(until)
        self._hear_threads()
        if not self.lease.is_held:
            # What is remembered may be outdated from now
            # on: a takeover begins with the checkpoint.
            self.reconciler = None
            return
        # Processor time, not wall clock: a turn that waits for the API server lets no news gather.
        begin = time.thread_time()
        try:
            if self.reconciler is None:
                # Before each kind was listed once, objects
                # that are only unknown would look deleted.
                if not all(watcher.synced.is_set() for watcher in self.watchers):
                    return
                if time.monotonic() < self._try_at and all(kind != "nodes" for _, kind, *_ in news):
                    return
                self.reconciler = self._take_over()
            if self.reconciler is not None:
                self._act(self.reconciler, news)
            self._errors = 0
            self._say("error", "")
        except TooLateError:
            self.reconciler = None  # the lease has run out, which its thread has said
        except (ApiError, LostAnswerError) as error:
            self.metrics.failures.inc()
            self._say("error", f"{error}; tried again")
            if isinstance(error, ApiError) and error.status == 409:
                self.reconciler = None  # another controller has written the checkpoint
            self.stopping.wait(AGAIN)
        except Exception:
            if self.reconciler is None:  # we cannot begin: how we are run is wrong
                raise
            # An error that stays must not fill the log, so each one in a row doubles the pause.
            doublings = min(self._errors, 32)  # no power beyond a float
            pause = min(AGAIN * 2**doublings, LONGEST_PAUSE)
            self._errors += 1
            self.metrics.failures.inc()
            log.exception(
                "an error of the controller; it goes on from the checkpoint in %g s", pause
            )
            self.reconciler = None
            self.stopping.wait(pause)
        self._busy = time.thread_time() - begin

    def _say(self, subject: str, what: str, level: int = logging.WARNING) -> None:
        if what and what != self._said.get(subject):
            log.log(level, "%s", what)
        self._said[subject] = what

    def _hear_threads(self) -> None:
        """Log new troubles of the API server and who has the lease; raise what ended a thread."""
        # Threads that are kept by the same cause have one line together. What ended a thread is
        # raised here: a thread cannot end the process.
        threads = (*self.watchers, self.lease)
        for thread in threads:
            if thread.failure is not None:
                raise thread.failure
        troubles = frozenset(thread.trouble for thread in threads if thread.trouble is not None)
        for trouble in sorted(troubles - self._troubles):
            log.error("%s: %s; tried again", self._objects.connection.host, trouble)
        if self._troubles and not troubles:
            log.info("%s answers again", self._objects.connection.host)
        self._troubles = troubles
        other, lease = self.lease.other, self.settings.controller
        message = f"standing by: {other} has the lease {lease}, and acts" if other else ""
        self._say("lease", message, logging.INFO)

    def _take_over(self) -> Reconciler | None:
        """Return the restored reconciler; None as long as the nodes make no machines."""
        seen = self._seen()
        if isinstance(self._now, SteadyTime):
            self._now.begin()  # the checkpoint's slots are those of the clock on the wall
        try:
            reconciler = restore_controller(
                self._fenced, self._policy, self.settings, self.metrics, seen, self._now
            )
        except NodesError as error:
            self._say("nodes", f"{error}; waiting for it")
            self._try_at = time.monotonic() + LOOK_AGAIN
            return None
        self._say("nodes", "")
        nodes = {place.node for place in reconciler.machines.places}
        log.info("serving policy %s on %d nodes", reconciler.driver.policy.name, len(nodes))
        return reconciler

    def _seen(self) -> Seen:
        """Return the objects without jobs of other controllers, each of which is logged once."""
        objects = {plural: store.items() for plural, store in self.stores.items()}
        own, others = without_others(objects, self.settings.controller)
        for uid, (job, other) in others.items():
            if uid not in self._others:
                hint = "to take it over when that one is gone, set its status.controller to null"
                log.warning("%s: left alone, the controller %s schedules it; %s", job, other, hint)
        self._others = frozenset(others)
        return Seen(own)

    def _act(self, reconciler: Reconciler, news: list[News]) -> None:
        """Take one turn: count work, plan if a slot is due, claim jobs, write pods and statuses."""
        if isinstance(self._now, SteadyTime):
            reconciler.clock.drift = self._now.drift()
        seen = self._seen()
        # News are counted first: they tell of the slot that may end in this turn.
        self._count(reconciler, seen, news)

        if tries := reconciler.tries(seen, self._now()):
            reconciler.learning.tried(tries, self.writer.try_out(tries), self._now())
        # A long plan is made in a thread: until then pods and statuses follow the one before it.
        on_end = partial(self._hear, "plan")
        begun = reconciler.plan_if_due(self._now(), self._seen, PLAN_WAIT, on_end)
        # Planning may have taken seconds, in which pods came and went.
        seen = self._seen()
        if begun:
            self.writer.write_windows(reconciler.windows.outdated(seen, self._now()))
        steps = reconciler.steps(seen, self._now())
        jobs = reconciler.statuses
        # Of two controllers that meet a new job one gets it, before either makes a pod for it.
        self.writer.write_statuses(job for job in jobs.values() if not job.is_claimed)
        actions = [a for a in steps.actions if a.job not in jobs or jobs[a.job].is_claimed]
        if actions:
            failed = self.writer.do(actions)
            # Statuses are written last, so that they tell of the writes that were refused.
            reconciler.did(actions, failed, self._now())
        self.writer.write_statuses(jobs.values())

    def _count(self, reconciler: Reconciler, seen: Seen, news: list[News]) -> None:
        """Count the work of jobs whose pods changed, up to when the watch reported it."""
        times: dict[str, list[float]] = {}
        for at, kind, _, item in news:
            uid = claimed(item, seen.claims) if kind == "pods" and item else None
            if uid is not None:  # it may be later than now: noted before we took over, and a jump
                times.setdefault(uid, []).append(min(at, self._now()))
        for uid, noted in times.items():
            reconciler.note(uid, seen, noted[-1], broken_at=noted[0])

    def _gather(self, until: float) -> list[News]:
        """Wait for changes up to `until`; return the first with those that follow at once."""
        # On a large cluster a turn is long. News then gather for as long, so that to look at
        # thousands of pods that start one after the other takes at most half of a processor.
        news = []
        # Without news, half a second passes before the lease and what failed are looked at again.
        timeout = max(0.0, min(until - self._now(), AGAIN))
        with suppress(queue.Empty):
            news.append(self._news.get(timeout=timeout))
            remaining = max(0.0, until - self._now())
            time.sleep(max(SETTLE, min(self._busy, AGAIN, remaining)))
            while True:
                news.append(self._news.get_nowait())
        return news


def followed(settings: ControllerSettings) -> list[Followed]:
    """Return each kind of object that the controller follows, with a namespace; None: all."""
    # Pods are those of all namespaces, because those of others take room on the nodes too (and
    # Workloads quota); a controller that has rights in some namespaces alone sees no others.
    spaces: tuple[str | None, ...] = settings.namespaced or (settings.watched,)
    everywhere: tuple[str | None, ...] = settings.namespaced or (None,)
    nodes = replace(NODES, selector=settings.node_selector)
    of_jobs = [OASIS_JOBS, SERVICES, NETWORK_POLICIES, LOCAL_QUEUES]
    of_jobs += [kind.where for kind in EXISTING[:-1]]
    of_cluster = [nodes, CLASSES, WINDOWS, CLUSTER_QUEUES]
    parts = ((of_jobs, spaces), ([PODS, WORKLOADS], everywhere), (of_cluster, (None,)))
    return [(kind, where) for kinds, wheres in parts for kind in kinds for where in wheres]
