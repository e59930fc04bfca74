"""One decision of KOD2 after the other, written from the paper's Algorithms 1 to 3 with pods."""

import math

from tests.oracle.controller_pods import (
    Controller,
    fits,
    gang,
    idle,
    one_by_one,
    one_node,
    take,
    workers_of,
)


class Reference(Controller):
    """KOD2's answer at each instant."""

    def __init__(self, sizes, limit):
        super().__init__(sizes)
        self.limit, self.starving = limit, set()

    def weight(self, k):
        job = self.jobs[k]
        largest = [max(row[r] for row in self.sizes) for r in (0, 1)]
        asked = math.fsum([1 / largest[0], job["memory"] / largest[1]])
        return math.inf if k in self.starving else job["least"] / asked

    def answer(self, now):
        self.raise_starving(now)
        while self.waiting and self.algorithm_1():
            pass
        self.algorithm_3()

    def raise_starving(self, now):
        late = {k for k in self.waiting if self.since[k] + self.limit <= now}
        self.seen["starving"] += len(late - self.starving)
        self.starving |= late

    def algorithm_1(self):
        line = sorted(self.waiting, key=lambda k: (-self.weight(k), k))
        top = max((self.weight(k) for k in self.running), default=-math.inf)
        if self.weight(line[0]) >= top:
            return self.launch(line[0]) or self.algorithm_2(line[0])
        self.seen["walk"] += 1
        launched, failed = [], []  # a size that did not fit is not tried again
        for k in line:
            size = [self.jobs[k][key] for key in ("least", "p", "memory")]
            if size not in failed:
                (launched if self.launch(k) else failed).append(k if k in self.running else size)
        return bool(launched)

    def launch(self, k, pods=None):
        job = self.jobs[k]
        if pods is None:
            pods = one_node(self.free, self.sizes, job, job["least"]) or self.together(job)
        if pods:
            self.running[k] = pods
            self.waiting.remove(k)
            self.starving.discard(k)
        return bool(pods)

    def together(self, job):
        """Servers, then workers, each on the machines that were most idle, filled in turn."""
        first = self.by_idle()
        pods = one_by_one(
            self.free, job, ["ps"] * job["p"], lambda hosts, _: min(hosts, key=first.index)
        )
        if pods is None:
            return None
        used = sorted({m for _, m in pods})
        order = [*used, *(m for m in self.by_idle() if m not in used)]
        kinds = ["worker"] * job["least"]
        more = one_by_one(self.free, job, kinds, lambda hosts, _: min(hosts, key=order.index))
        if more is None:
            take(self.free, job, pods, -1)
        return None if more is None else pods + more

    def by_idle(self):
        machines = range(len(self.free))
        return sorted(machines, key=lambda m: (-idle(self.free, self.sizes, m), m))

    def algorithm_2(self, k):
        job, kept = self.jobs[k], dict(self.running)
        free = [list(row) for row in self.free]
        line = sorted(self.running, key=lambda v: (self.weight(v), v))
        for v in [v for v in line if self.weight(v) != self.weight(k) or v > k]:
            servers = {m for kind, m in kept[v] if kind == "ps"}
            pods = [m for kind, m in kept[v] if kind == "worker"]
            for m in sorted(pods, key=lambda m: (m in servers, m)):
                if workers_of(self.running[v]) == self.jobs[v]["least"]:
                    break
                self.give(v, m)
                if self.fits_at(k, job, m):
                    return True
        self.running, self.free = kept, free
        self.seen["scale-in in vain"] += 1
        return False

    def fits_at(self, k, job, machine):
        pods = gang(job, job["least"], machine)
        if not fits(self.free, job, pods):
            return False
        self.seen["scale-in"] += 1
        return self.launch(k, pods)

    def algorithm_3(self):
        for k in sorted(self.running, key=lambda k: (-self.weight(k), k)):
            job = self.jobs[k]
            for m, row in enumerate(self.free):
                while workers_of(self.running[k]) < job["most"] and (
                    row[0] >= 1 and row[1] >= job["memory"]
                ):
                    take(self.free, job, [("worker", m)])
                    self.running[k] = [*self.running[k], ("worker", m)]
                    self.seen["grown"] += 1
