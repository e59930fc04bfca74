"""Waiting times: for refused writes, and for pods that do not become ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oasis.kubernetes.cluster.pods import Object, failures, is_ending, is_gated, is_unschedulable
from oasis.kubernetes.names import INDEX, TASK
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.model.job import Job

# uid of the job, word for what was to be done, and what the API server said, or an error of ours
Failure = tuple[str, str, str | Exception]
Write = tuple[str, str]  # uid of the job, and word for what is to be done

FIRST_WAIT = 1.0  # seconds after a write of a job was refused; twice as long each time
LONGEST_WAIT = 60.0  # seconds
# What took the room may go again soon; who waits for longer only keeps nodes from others.
STUCK = 0.5  # of a slot: so long a pod may be without room before its gang is withdrawn
SWITCHES = ("suspend", "resume")  # of which an object gets each once a slot
LONGEST_PAUSE = 3600.0  # seconds until room is planned again for a job that could not use it


@dataclass(slots=True)
class _Wait:
    """Waiting state of one version of a job."""

    generation: int = 0
    is_whole: bool = False  # whether all that it holds is ready
    since: float | None = None  # since when it holds room and not all of its pods are ready
    taken_back: int = 0  # how often the plan took the room back, without its pods ever being ready
    again_at: float | None = None  # until then nothing is planned for it
    most: int | None = None  # workers that are planned for it


@dataclass(slots=True)
class Patience:
    """Delays repeated refused writes, and names jobs whose capacity others may have."""

    timeout: float  # seconds for which a job may hold room in which not all of its pods are ready
    longest: float = LONGEST_WAIT  # seconds between two attempts of a write that is refused
    _refused: dict[Write, tuple[int, float, str]] = field(default_factory=dict)
    _waits: dict[str, _Wait] = field(default_factory=dict)
    _suspended: dict[str, bool] = field(default_factory=dict)  # objects, as we wrote them last
    _switched: set[Write] = field(default_factory=set)  # in this slot
    _stuck_since: dict[str, float] = field(default_factory=dict)  # by uid of the pod
    # By job and by pod, with its task and index before it if it knows others.
    _failures: dict[str, dict[str, int]] = field(default_factory=dict)

    # -- writes ------------------------------------------------------------------------------------

    def wrote(self, asked: Collection[Write], failures: Collection[Failure], now: float) -> None:
        """Record the writes `asked`; those of them that were refused wait longer each time."""
        failed = [(uid, word, why) for uid, word, why in failures if isinstance(why, str)]
        refused = Counter((uid, word) for uid, word, _ in failed)
        for write, count in Counter(asked).items():
            if refused[write] < count:  # some of it was taken: the waits begin anew
                self._refused.pop(write, None)
        unsure = {(uid, word) for uid, word, _ in failures}  # the answer of a write may be lost
        for uid, word in (write for write in asked if write[1] in SWITCHES):
            self._suspended.pop(uid, None)
            if (uid, word) not in unsure:
                self._suspended[uid] = word == SWITCHES[0]
                self._switched.add((uid, word))
        for uid, word, why in failed:
            if refused.pop((uid, word), 0):
                times = self._refused.get((uid, word), (0, 0.0, ""))[0]
                wait = longer(times + 1, self.longest)
                self._refused[uid, word] = times + 1, now + wait, why

    def may_write(self, uid: str, word: str, now: float) -> bool:
        """Return whether a write of this kind is due: not refused lately, no second switch."""
        is_due = now >= self._refused.get((uid, word), (0, now, ""))[1]
        return is_due and (uid, word) not in self._switched

    def begin_slot(self) -> None:
        """Allow each object to be suspended and resumed again."""
        self._switched.clear()

    def others_switched(self, uid: str, is_suspended: bool) -> bool:
        """Return, once, whether others suspended or resumed an object after we did."""
        if self._suspended.get(uid, is_suspended) == is_suspended:
            return False
        del self._suspended[uid]
        return True

    def is_refused(self, uid: str, word: str) -> bool:
        """Return whether the last write of this kind was refused."""
        return (uid, word) in self._refused

    def last_refusal(self, uid: str) -> str:
        """Return the last error of the API server about a write of the job; empty without one."""
        refusals = (why for (job, _), (_, _, why) in self._refused.items() if job == uid)
        return next(refusals, "")

    # -- pods --------------------------------------------------------------------------------------

    def note(self, uid: str, is_whole: bool | None, at: float) -> float | None:
        """Record if all pods are ready, None: there are none; if so return when the wait began."""
        # Return since when that was waited for, once it is.
        wait = self._waits.setdefault(uid, _Wait())
        waited = wait.since if is_whole else None
        wait.is_whole = is_whole is True
        if is_whole is not False:
            wait.since = None
            wait.taken_back = 0 if is_whole else wait.taken_back
        elif wait.since is None:
            wait.since = at
        return waited

    def excuse(self, uid: str, at: float) -> None:
        """Restart the waiting time of a job at `at`, because other pods are in its way."""
        wait = self._waits.setdefault(uid, _Wait())
        if wait.since is not None:
            wait.since = max(wait.since, at)

    def is_whole(self, uid: str) -> bool:
        """Whether all pods of the job were ready at the last check."""
        return self._waits.get(uid, _Wait()).is_whole

    def is_over(self, uid: str, now: float) -> bool:
        """Whether the pods of the job have been unready for too long."""
        since = self._waits.get(uid, _Wait()).since
        return since is not None and now - since >= self.timeout

    def pause(self, spec: JobSpec, now: float) -> float:
        """Stop planning the job for a while, longer each time; return when that ends."""
        wait = self._waits[spec.uid]
        seconds = min(LONGEST_PAUSE, self.timeout * 2.0 ** min(wait.taken_back, 32))
        wait.since, wait.generation, wait.again_at = None, spec.generation, now + seconds
        wait.taken_back += 1
        return now + seconds

    def plan_at_most(self, spec: JobSpec, most: int) -> None:
        """Plan no more than `most` workers for the job until it is edited."""
        # It has waited since as before: where fewer are not ready either, others get all of its
        # room at the next boundary.
        wait = self._waits[spec.uid]
        wait.generation, wait.most = spec.generation, most

    def as_planned(self, spec: JobSpec, now: float) -> tuple[JobSpec | None, bool]:
        """Return the job with its limit, None while it is paused; and whether a pause has ended."""
        wait = self._waits.get(spec.uid)
        if wait is None or (wait.again_at is None and wait.most is None):
            return spec, False
        was_paused = wait.again_at is not None
        if wait.generation != spec.generation:  # an edit ends the pause, and its limit
            wait.again_at, wait.most, wait.taken_back = None, None, 0
        if wait.again_at is not None and now < wait.again_at:
            return None, False
        wait.again_at = None
        return spec if wait.most is None else with_at_most(spec, wait.most), was_paused

    def stuck(self, pods: Iterable[Object], now: float, limit: float) -> frozenset[str]:
        """Return the uids of pods for which the scheduler has found no room for `limit` seconds."""
        waiting = {
            pod["metadata"]["uid"]
            for pod in pods
            if is_unschedulable(pod) and not is_gated(pod) and not is_ending(pod)
        }
        # A pod that was bound meanwhile drops out, so that only an uninterrupted wait counts.
        self._stuck_since = {uid: self._stuck_since.get(uid, now) for uid in waiting}
        return frozenset(uid for uid, since in self._stuck_since.items() if now - since >= limit)

    def failures(self, uid: str, pods: Iterable[Mapping[str, Any]]) -> int:
        """Return the number of failures of pods of the job, including pods that are gone."""
        # Pods that know each other fail together, where one takes the others with it: of those the
        # one that has failed most often counts.
        for pod in pods:
            if count := failures(pod):
                meta, labels = pod["metadata"], pod["metadata"].get("labels") or {}
                place = f"{labels[TASK]}-{labels[INDEX]}/" if INDEX in labels else ""
                self._failures.setdefault(uid, {})[place + meta["uid"]] = count
        by_place: Counter[str] = Counter()
        for key, count in self._failures.get(uid, {}).items():
            by_place[key.rpartition("/")[0]] += count
        independent = by_place.pop("", 0)
        return independent + max(by_place.values(), default=0)

    def forgive(self, uid: str) -> None:
        """Reset the number of failures of the job to 0."""
        self._failures.pop(uid, None)

    def forget(self, existing: Container[str], live: Container[str]) -> None:
        """Forget all jobs but the `existing` ones; those that are not `live` hold nothing."""
        self._waits = {uid: wait for uid, wait in self._waits.items() if uid in existing}
        self._refused = {key: value for key, value in self._refused.items() if key[0] in existing}
        self._suspended = {uid: value for uid, value in self._suspended.items() if uid in existing}
        self._failures = {uid: counts for uid, counts in self._failures.items() if uid in existing}
        for uid, wait in self._waits.items():
            wait.since = wait.since if uid in live else None

    def state(self, clock: SlotClock) -> dict[str, Any]:
        """Return plain data for a takeover; times are wall-clock times."""
        waits = {}
        for uid, wait in self._waits.items():
            if wait.taken_back or wait.most is not None:
                again = None if wait.again_at is None else clock.wall(wait.again_at)
                waits[uid] = [wait.generation, wait.taken_back, again, wait.most]
        return {"waits": waits, "failures": self._failures}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the waiting times from the data of `state`."""
        self._failures = {uid: dict(counts) for uid, counts in state["failures"].items()}
        for uid, (generation, taken_back, again_at, most) in state["waits"].items():
            wait = self._waits[uid] = _Wait(generation, taken_back=taken_back)
            wait.again_at, wait.most = again_at, most


def longer(times: int, longest: float = LONGEST_WAIT) -> float:
    """Return the seconds to wait after this number of refusals in a row."""
    return min(FIRST_WAIT * 2.0 ** min(times - 1, 32), longest)


def with_at_most(spec: JobSpec, most: int) -> JobSpec:
    """Return the job with the same work and at most `most` workers, never below its minimum."""
    forms = zip(spec.job.forms, spec.job.in_forms, strict=False)  # a job without forms is its own
    job = replace(
        spec.job,
        **_fewer(spec.job, most),
        forms=tuple(replace(form, **_fewer(whole, most)) for form, whole in forms),
    )
    first = spec.initial_workers
    return replace(
        spec,
        job=job,
        initial_workers=None if first is None else min(first, job.chunks),
        forms=tuple(with_at_most(form, most) for form in spec.forms),
    )


def _fewer(job: Job, most: int) -> dict[str, Any]:
    """Return the fields of a job that change so that it has the same work for `most` workers."""
    # As where the work is read: the chunks beyond the workers become mini-batches.
    count = max(job.min_workers, min(job.chunks, most))
    share = job.chunks / count
    return {
        "chunks": count,
        "minibatch_time": job.minibatch_time * share,
        "gradient_mb": job.gradient_mb * share,
    }
