"""One decision of the priority-queue autoscaler after the other, from its five procedures."""

import math

from tests.oracle.controller_pods import Controller, fits, gang, one_by_one, take, workers_of


class Reference(Controller):
    """The autoscaler's answer at each instant."""

    def __init__(self, sizes, printed=False):
        super().__init__(sizes)
        self.printed = printed

    def answer(self, now):
        if self.printed:
            self.main_as_printed()
        else:
            while self.main():
                pass
            self.scale_up()

    def request(self, k):
        job = self.jobs[k]
        gpus, memory = (max(row[r] for row in self.sizes) for r in (0, 1))
        return math.fsum([job["n"] / gpus, job["n"] * job["memory"] / memory, job["p"] / memory])

    def outranks(self, k, other):
        """The paper's condition, and first come first served where it leaves two jobs equal."""
        mine, theirs = self.jobs[k]["worth"], self.jobs[other]["worth"]
        if mine != theirs:
            return mine > theirs
        mine, theirs = self.request(k), self.request(other)
        return mine > theirs if mine != theirs else k < other

    def arrive(self, k):
        place = next((i for i, q in enumerate(self.waiting) if self.outranks(k, q)), None)
        self.waiting.insert(len(self.waiting) if place is None else place, k)

    def by_rank(self, jobs):
        return sorted(jobs, key=lambda k: sum(self.outranks(q, k) for q in self.jobs))

    def gang(self, k):
        job = self.jobs[k]
        for m in range(len(self.free)):
            if fits(self.free, job, gang(job, job["n"], m)):
                return self.start(k, gang(job, job["n"], m))
        kinds = ["worker"] * job["n"] + ["ps"] * job["p"]
        pods = one_by_one(self.free, job, kinds, lambda hosts, _: hosts[0])
        self.seen["spread"] += pods is not None
        return bool(pods) and self.start(k, pods)

    def start(self, k, pods):
        self.running[k] = pods
        if k in self.waiting:
            self.waiting.remove(k)
        return True

    def worth_most(self):
        most = max((self.jobs[k]["worth"] for k in self.running), default=-math.inf)
        return self.jobs[self.waiting[0]]["worth"] > most

    def main(self):
        if self.waiting and self.worth_most():
            return self.gang(self.waiting[0]) or self.scale_down(self.waiting[0])
        return any(self.gang(k) for k in list(self.waiting))

    def main_as_printed(self):
        best = self.waiting[0] if self.waiting and self.worth_most() else None
        if best is not None:
            self.gang(best)
        walk = best is None or self.scale_down_as_printed(best)
        if not (walk and any(self.gang(k) for k in list(self.waiting))):
            self.scale_up()

    def on(self, k, machine):
        pods = gang(self.jobs[k], self.jobs[k]["n"], machine)
        return pods if fits(self.free, self.jobs[k], pods) else None

    def scale_down(self, k):
        kept, free = dict(self.running), [list(row) for row in self.free]
        for v in reversed(self.by_rank(self.running)):
            for _, m in sorted(pod for pod in kept[v] if pod[0] == "worker"):
                if workers_of(self.running[v]) > self.jobs[v]["least"]:
                    self.give(v, m)
                    self.seen["shrunk"] += 1
                    if pods := self.on(k, m):
                        self.seen["helped"] += 1
                        return self.start(k, pods)
        if self.gang(k):
            self.seen["helped at last"] += 1
            return True
        self.running, self.free = kept, free
        self.seen["in vain"] += 1
        return False

    def scale_down_as_printed(self, k):
        kept, free, m = dict(self.running), [list(row) for row in self.free], None
        for v in list(self.running):
            spare = workers_of(self.running[v]) - self.jobs[v]["least"]
            for m in sorted({m for kind, m in self.running[v] if kind == "worker"}):
                if pods := self.on(k, m):
                    take(self.free, self.jobs[k], pods, -1)
                    self.seen["helped"] += 1
                    return True
                if not spare:
                    break
                spare -= 1
                self.give(v, m)
                self.seen["shrunk"] += 1
        if m is not None and (pods := self.on(k, m)):
            take(self.free, self.jobs[k], pods, -1)
            self.seen["helped at last"] += 1
            return True
        self.running, self.free = kept, free
        self.seen["in vain"] += 1
        return False

    def scale_up(self):
        for m in range(len(self.free)):
            for k in self.by_rank(self.running):
                while workers_of(self.running[k]) < self.jobs[k]["most"] and fits(
                    self.free, self.jobs[k], [("worker", m)]
                ):
                    self.running[k] = [*self.running[k], ("worker", m)]
                    self.seen["grown"] += 1
