"""One decision of SpeCon after the other, from its Algorithms 1 to 3 as the text explains them.

The test sets `values`, what has been seen of each job, and `up`, the machines that are there.
"""

import math

from tests.oracle.controller_pods import Controller, fits, gang, idle, take

PC, WC, CC = "progressing", "watching", "converged"


class Reference(Controller):
    """SpeCon's answer at each instant."""

    def __init__(self, sizes, alpha, interval, cores, counted="worker", always=True):
        super().__init__(sizes)
        self.alpha, self.interval, self.cores = alpha, interval, cores
        self.counted, self.always = counted, always
        self.state, self.values, self.up = {}, {}, []
        self.weights = {PC: 2.0, WC: 1.5, CC: 1.0}
        self.looks, self.turn, self.task_turn = 0, 0, {"worker": 0, "ps": 0}

    def arrive(self, k):
        super().arrive(k)
        old = self.state.get(k, {"moved": False, "rebalanced": False})
        new = {"in": PC, "value": None, "growth": math.inf, "largest": 0.0, "since": None}
        kept = {key: old[key] for key in ("moved", "rebalanced")}
        self.state[k] = old if old["moved"] else new | kept

    def answer(self, now):
        self.launch()
        kept = dict(self.running)
        if self.looks * self.interval <= now:
            while self.looks * self.interval <= now:
                self.looks += 1
            self.algorithm_1()
        self.algorithm_3()
        if kept != self.running:
            self.launch()

    def launch(self):
        for k in list(self.waiting):
            pods = self.in_turn(self.jobs[k])
            if pods:
                self.running[k] = pods
                self.waiting.remove(k)

    def in_turn(self, job):
        machines = len(self.free)
        for m in [(self.turn + step) % machines for step in range(machines)]:
            pods = gang(job, job["n"], m)
            if self.up[m] and fits(self.free, job, pods):
                self.turn = m + 1
                return pods
        whole = gang(job, job["n"], 0)
        if any(fits([list(row) for row in [size]], job, whole) for size in self.sizes):
            return None
        pods = []
        for kind in ["worker"] * job["n"] + ["ps"] * job["p"]:
            order = [(self.task_turn[kind] + step) % machines for step in range(machines)]
            m = next((m for m in order if fits(self.free, job, [(kind, m)])), None)
            if m is None:
                take(self.free, job, pods, -1)
                return None
            self.task_turn[kind] = m + 1
            pods.append((kind, m))
        self.seen["spread"] += 1
        return pods

    def at(self, m):
        return [k for k, pods in self.running.items() if m in {at for _, at in pods}]

    def machines(self):
        return [m for m in range(len(self.free)) if self.up[m]]

    def algorithm_1(self):
        asking = []
        for k in sorted(self.running):
            c, seen = self.state[k], self.values[k]
            if c["moved"] or not seen:
                continue
            value, last = seen[-1][1], c["value"]
            c["value"], c["largest"] = value, max(c["largest"], abs(value))
            if last is None:
                continue
            g, g_before = abs(value - last), c["growth"]
            share, c["growth"] = g / c["largest"] if c["largest"] else 0.0, g
            if share > self.alpha:
                self.seen["back"] += c["in"] != PC
                c["in"] = PC
            elif share < self.alpha and g < g_before:
                if c["in"] == CC:
                    asking.append(k)
                else:
                    c["in"], c["since"] = (WC, None) if c["in"] == PC else (CC, self.now)
            else:
                self.seen["stays slow"] += 1
        for k in asking:
            homes = {m for _, m in self.running[k]}
            if len(homes) == 1:
                where = self.at(*homes) if self.counted == "worker" else self.running
                others = [self.state[o]["in"] for o in where]
                self.seen["asks"] += 1
                if others.count(PC) + others.count(WC) > 1:
                    self.algorithm_2(k, *homes)

    def algorithm_2(self, k, home):
        score = {
            m: sum(self.weights[self.state[o]["in"]] for o in self.at(m)) for m in self.machines()
        }
        self.state[k]["moved"] = True
        able = [m for m in score if m == home or self.room(k, m)]
        best = [m for m in able if score[m] == min(score[a] for a in able)]
        self.seen["stays"] += home in best
        if home not in best:
            self.seen["moves"] += 1
            self.seen["ties"] += len(best) > 1
            self.move(k, min(best, key=lambda m: (self.usage(m), m)))

    def room(self, k, m):
        pods = gang(self.jobs[k], self.jobs[k]["n"], m)
        there = fits(self.free, self.jobs[k], pods)
        if there:
            take(self.free, self.jobs[k], pods, -1)
        return there

    def usage(self, m):
        busy = [
            sum(self.jobs[k]["cpu"] for kind, at in self.running[k] if (kind, at) == ("worker", m))
            for k in self.at(m)
        ]
        return math.fsum(busy) / self.cores + 1.0 - idle(self.free, self.sizes, m)

    def move(self, k, m):
        job = self.jobs[k]
        take(self.free, job, self.running[k], -1)
        self.running[k] = gang(job, job["n"], m)
        take(self.free, job, self.running[k])

    def algorithm_3(self):
        early = [k for k in self.running if self.state[k]["in"] != CC]
        if early and not self.always:
            return
        workers = self.machines()
        if not workers:
            return
        count = {m: len(self.at(m)) for m in workers}
        bf = sum(count.values()) // len(workers)
        idle_ones = [m for m in workers if count[m] == 0]
        line = [k for k in self.running if len({m for _, m in self.running[k]}) == 1]
        line = [k for k in line if not self.state[k]["rebalanced"] and k not in early]
        line.sort(key=lambda k: (self.now - self.state[k]["since"], k))
        targets = idle_ones or [m for m in workers if count[m] < bf - 1]
        if idle_ones and bf == 0:
            return
        for m in targets:
            homes = {k: self.running[k][0][1] for k in line}
            able = [k for k in line if (idle_ones or homes[k] not in targets) and self.room(k, m)]
            if able:
                self.move(able[0], m)
                self.state[able[0]]["rebalanced"] = True
                self.seen["idle filled" if idle_ones else "evened out"] += 1
                self.seen["before all have converged"] += bool(early)
                line.remove(able[0])
