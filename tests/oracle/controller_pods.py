"""Shared parts of the controllers' references: jobs as lists of pods on machines.

It shares nothing with the policies. A machine is [GPUs, memory] that are free. A job is a dict: its
place `k` in the order of arrival, `arrival`, `n` workers asked for, `least` and `most` workers, `p`
parameter servers; a worker takes a GPU and `memory`, a parameter server one of memory. Pods are
(kind, machine); whoever runs is a list of pods.
"""

import math
from collections import Counter


def need(job, kind):
    return (1, job["memory"]) if kind == "worker" else (0, 1)


def take(free, job, pods, sign=1):
    for kind, machine in pods:
        for r, amount in enumerate(need(job, kind)):
            free[machine][r] -= sign * amount


def fits(free, job, pods):
    """Take `pods` if no machine is overfull then; whether they were taken."""
    take(free, job, pods)
    if all(left >= 0 for row in free for left in row):
        return True
    take(free, job, pods, -1)
    return False


def gang(job, workers, machine):
    return [("worker", machine)] * workers + [("ps", machine)] * job["p"]


def idle(free, sizes, machine):
    """Mean free share of what the machine has; in floats, for rounding decides some ties."""
    pairs = zip(free[machine], sizes[machine], strict=True)
    shares = [left / size for left, size in pairs if size]
    return math.fsum(shares) / len(shares)


def one_node(free, sizes, job, workers):
    """All pods on the fullest machine that has room for them."""
    order = sorted(range(len(free)), key=lambda m: (idle(free, sizes, m), m))
    return next((pods for m in order if fits(free, job, pods := gang(job, workers, m))), None)


def one_by_one(free, job, kinds, choose):
    """Pods in this order, each where `choose` says; nothing is taken if one fits nowhere."""
    pods = []
    for kind in kinds:
        hosts = [m for m in range(len(free)) if fits(free, job, [(kind, m)])]
        for m in hosts:
            take(free, job, [(kind, m)], -1)
        if not hosts:
            take(free, job, pods, -1)
            return None
        pods.append((kind, choose(hosts, pods)))
        take(free, job, pods[-1:])
    return pods


def drop(pods):
    """Without one worker: away from parameter servers, where fewest are, last by index."""
    servers = {m for kind, m in pods if kind == "ps"}
    there = Counter(m for kind, m in pods if kind == "worker")
    machine = min(there, key=lambda m: (m in servers, there[m], -m))
    rest = list(pods)
    rest.remove(("worker", machine))
    return rest


def workers_of(pods):
    return sum(kind == "worker" for kind, _ in pods)


class Controller:
    """Who waits, who runs where, and what is free; `sizes` are the machines, as [GPUs, memory]."""

    def __init__(self, sizes):
        self.sizes, self.seen = sizes, Counter()  # branches that were taken
        self.waiting, self.running, self.jobs, self.since = [], {}, {}, {}

    def decide(self, now, free, came, gone, evicted):
        """Pods of the jobs that change."""
        self.free, self.now, before = [list(row) for row in free], now, dict(self.running)
        for job in (*gone, *evicted):
            before.pop(job["k"], None)
            self.running.pop(job["k"], None)
            self.waiting = [k for k in self.waiting if k != job["k"]]
        for job in sorted((*came, *evicted), key=lambda job: job["k"]):
            self.jobs[job["k"]], self.since[job["k"]] = job, now
            self.arrive(job["k"])
        self.answer(now)
        return {k: pods for k, pods in self.running.items() if before.get(k) != pods}

    def arrive(self, k):
        self.waiting = sorted([*self.waiting, k])

    def give(self, k, machine):
        """A worker of job k on this machine is free."""
        rest = list(self.running[k])
        rest.remove(("worker", machine))
        take(self.free, self.jobs[k], [("worker", machine)], -1)
        self.running[k] = rest

    def spare(self):
        return {v: workers_of(pods) - self.jobs[v]["least"] for v, pods in self.running.items()}
