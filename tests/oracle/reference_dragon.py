"""One decision of DRAGON after the other, with lists of pods: the paper's Fig. 5, its public code.

The rounds of `Coded` and `Released` are step by step what the two public versions do in a round,
written down in words before. Two things are added: rounds follow each other at one instant until
one changes nothing, and then whoever was shrunk takes back what nobody used.
"""

from collections import Counter

from tests.oracle.controller_pods import (
    Controller,
    drop,
    fits,
    one_by_one,
    one_node,
    take,
    workers_of,
)


class Reference(Controller):
    """DRAGON's answer at each instant."""

    def __init__(self, sizes, theta, patience, scaling=True):
        super().__init__(sizes)
        self.theta, self.patience, self.scaling = theta, patience, scaling
        self.gpus_idle = [[] for _ in sizes]  # of each idle GPU, since when
        self.last, self.remembered = 0.0, None

    def answer(self, now):
        if self.scaling:
            while self.urgent(now):
                pass
        hopeless = []
        for k in list(self.waiting):
            job = self.jobs[k]
            same = [job[key] for key in ("n", "least", "p", "memory")]
            if same not in hopeless and not self.launch(k, job["n"]):
                hopeless.append(same)
        if self.scaling:
            self.watch_gpus(now)
            self.grow_all(now)
            for ages, (left, _) in zip(self.gpus_idle, self.free, strict=True):
                del ages[: len(ages) - left]  # the oldest were used

    def launch(self, k, workers):
        pods = self.pack(self.jobs[k], workers)
        if pods:
            self.running[k] = pods
            self.waiting.remove(k)
        return pods

    def pack(self, job, workers):
        """Fewest machines, counted with those of the parameter servers."""
        found = one_node(self.free, self.sizes, job, workers)
        if found:
            return found
        ranked = []
        for home in (None, *range(len(self.free))):
            pods = self.fill(job, workers, home) if home is None or job["p"] else None
            if pods:
                machines, beside = len({m for _, m in pods}), pods.count(("worker", home))
                # of equals the one that placed workers first, then most workers beside the servers
                ranked.append((machines, home is not None, -beside, len(ranked), pods))
        if not ranked:
            return None
        pods = min(ranked)[-1]
        take(self.free, job, pods)
        return pods

    def fill(self, job, workers, home):
        """The roomiest machines first; all parameter servers on `home`, with what fits there."""
        free = [list(row) for row in self.free]
        servers = [("ps", home)] * job["p"] if home is not None else []
        if not fits(free, job, servers):
            return None
        room = Counter()
        for m in range(len(free)):
            while room[m] < workers and fits(free, job, [("worker", m)]):
                room[m] += 1
            take(free, job, [("worker", m)] * room[m], -1)
        order = sorted(room, key=lambda m: (m != home, -room[m], m))
        pods = [("worker", m) for m in order for _ in range(room[m])][:workers]
        if len(pods) < workers:
            return None
        take(free, job, pods)
        if servers:
            return pods + servers
        return self.beside(free, job, pods)

    def beside(self, free, job, pods):
        """Each parameter server with most workers of those machines that have room."""
        there = Counter(m for _, m in pods)
        servers = one_by_one(
            free, job, ["ps"] * job["p"], lambda hosts, _: min(hosts, key=lambda m: (-there[m], m))
        )
        return None if servers is None else pods + servers

    def urgent(self, now):
        totals = [sum(row[r] for row in self.sizes) for r in (0, 1)]

        def share(k):
            job = self.jobs[k]
            memory = job["n"] * job["memory"] + job["p"]
            return max(job["n"] / totals[0], memory / totals[1])

        late = [k for k in self.waiting if self.since[k] + self.theta <= now]
        if not late:
            return False
        k = min(late, key=lambda k: (share(k), k))
        spare = self.spare()
        victims = sorted((v for v in self.running if spare[v]), key=lambda v: -spare[v])
        kept, free = dict(self.running), [list(row) for row in self.free]
        while not self.launch(k, self.jobs[k]["n"]):
            if not victims:
                self.running, self.free = kept, free
                self.seen["in vain"] += 1
                return False
            v = victims.pop(0)
            for _ in range(spare[v]):
                self.shrink(v)
            self.seen["shrunk"] += 1
        self.give_back({v: pods for v, pods in kept.items() if self.running[v] != pods})
        self.seen["urgent"] += 1
        return True

    def shrink(self, v):
        less = drop(self.running[v])
        gone = Counter(self.running[v]) - Counter(less)
        take(self.free, self.jobs[v], list(gone.elements()), -1)
        self.running[v] = less

    def give_back(self, held):
        """Whoever was shrunk takes back what it held, in this order, if that is still free."""
        for v, pods in held.items():
            missing = list((Counter(pods) - Counter(self.running[v])).elements())
            if missing and fits(self.free, self.jobs[v], missing):
                self.running[v] = pods
                self.seen["given back"] += 1

    def watch_gpus(self, now):
        for m, row in enumerate(self.free):
            ages = self.gpus_idle[m]
            del ages[row[0] :]
            ages += [now] * (row[0] - len(ages))

    def grow(self, k, machine):
        more = [("worker", machine)]
        if workers_of(self.running[k]) == self.jobs[k]["most"]:
            return False
        if not fits(self.free, self.jobs[k], more):
            return False
        self.running[k] = self.running[k] + more
        self.seen["grown"] += 1
        return True

    def grow_all(self, now):
        for m, ages in enumerate(self.gpus_idle):
            old = sum(age + self.patience <= now for age in ages)
            here = [k for k, pods in self.running.items() if m in {at for _, at in pods}]
            while old and here:
                able = []
                for k in here:
                    if old and self.grow(k, m):
                        old -= 1
                        able.append(k)
                here = able


class Coded(Reference):
    """Branch auto-scale of the authors' first repository."""

    def answer(self, now):
        held = {}
        while self.one_round(now, held):
            pass
        self.give_back(held)
        # step 4: the last round launched and shrank nobody
        if self.last + self.patience <= now:
            self.grow_all(now)
            self.last = now

    def one_round(self, now, held):
        # 1: the fewest workers of those that are late, 100 if there is none
        late = [k for k in self.waiting if self.since[k] + self.theta <= now]
        late = [k for k in late if k != self.remembered]
        chosen = min(late, key=lambda k: self.jobs[k]["least"], default=None)
        m = 100 if chosen is None else self.jobs[chosen]["least"]
        # 2: shrink, or launch the first that fits
        spare = self.spare()
        if sum(spare.values()) <= m and self.launch_first(now):
            return True
        if not self.waiting:
            return False
        # 3: one worker at a time, looked at after each
        need, taken, plan = m - sum(row[0] for row in self.free), 0, []
        for v in self.running:
            for _ in range(spare[v]):
                plan.append(v)
                taken += 1
                if taken >= need:
                    self.cut(plan, held, now)
                    self.remembered = chosen
                    return True
        self.seen["in vain"] += bool(plan)
        return False

    def launch_first(self, now):
        for k in self.waiting:
            if self.launch(k, self.jobs[k]["n"]):
                self.last = now
                return True
        return False

    def cut(self, plan, held, now):
        for v in plan:
            held.setdefault(v, self.running[v])
            self.shrink(v)
        self.last = now
        self.seen["shrunk"] += 1

    def pack(self, job, workers):
        """On one node, node by node, and both again with the fewest workers."""
        nodes = range(len(self.free))
        for count in (workers, job["least"]):
            whole = [[("worker", m)] * count for m in nodes]
            for pods in [*whole, self.node_by_node(job, count)]:
                if pods and fits(self.free, job, pods):
                    found = self.beside(self.free, job, pods)
                    if found:
                        return found
                    take(self.free, job, pods, -1)
                    self.seen["no room for servers"] += 1
        return None

    def node_by_node(self, job, count):
        free, pods = [list(row) for row in self.free], []
        for m in range(len(free)):
            while len(pods) < count and fits(free, job, [("worker", m)]):
                pods.append(("worker", m))
        return pods if len(pods) == count else None

    def grow_all(self, now):
        able = list(self.running)
        while able:
            able = [k for k in able if self.grow(k, self.home(k))]

    def home(self, k):
        kind = "ps" if self.jobs[k]["p"] else "worker"
        there = Counter(m for each, m in self.running[k] if each == kind)
        return min(there, key=lambda m: (-there[m], m))


class Released(Coded):
    """Version 0.9.1 of the authors' later repository."""

    def one_round(self, now, held):
        late = [k for k in self.waiting[:1] if self.since[k] + self.theta <= now]
        plan = []
        if late:
            self.last = now
            plan = self.enough(self.jobs[late[0]])
            if plan is None:
                self.seen["in vain"] += 1
                return False
        # in the same round, on what was free before
        launched = self.launch_first(now)
        if plan:
            self.cut(plan, held, now)
        return launched or bool(plan)

    def enough(self, job):
        """Whom to take a worker from until the fewest of `job` fit; None if they never do."""
        alone, kept = job | {"p": 0}, (dict(self.running), [list(row) for row in self.free])
        victims = [v for v, spare in self.spare().items() for _ in range(spare)]
        plan = []
        while not self.pack(alone, job["least"]):
            if len(plan) == len(victims):
                plan = None
                break
            plan.append(victims[len(plan)])
            self.shrink(plan[-1])
        self.running, self.free = kept
        return plan

    def shrink(self, v):
        """Workers on the first machine go first, those beside the parameter server last."""
        servers = {m for kind, m in self.running[v] if kind == "ps"}
        here = {m for kind, m in self.running[v] if kind == "worker"}
        machine = min(here, key=lambda m: (m in servers, m))
        self.give(v, machine)

    def pack(self, job, workers):
        """All on one node; else from the node that took most of one kind on, as many as fit."""
        nodes, most = range(len(self.free)), []
        for m in nodes:
            placed = self.on(self.free, m, job["p"], workers, job)
            if len(placed) == job["p"] + workers:
                take(self.free, job, placed)
                return placed
            most.append(max(sum(kind == each for each, _ in placed) for kind in ("ps", "worker")))
        start = max(nodes, key=lambda m: (most[m], -m))
        free, pods = [list(row) for row in self.free], []
        for m in [start, *(m for m in nodes if m != start)]:
            servers = job["p"] - sum(kind == "ps" for kind, _ in pods)
            here = self.on(free, m, servers, workers - workers_of(pods), job)
            take(free, job, here)
            pods += here
        if len(pods) - workers_of(pods) < job["p"] or workers_of(pods) < job["least"]:
            return None
        take(self.free, job, pods)
        return pods

    def on(self, free, m, servers, workers, job):
        """Pods that fit there, parameter servers first; the first that does not ends it."""
        trial, pods = [list(row) for row in free], []
        for kind in ["ps"] * servers + ["worker"] * workers:
            if not fits(trial, job, [(kind, m)]):
                break
            pods.append((kind, m))
        return pods

    def grow_all(self, now):
        line = list(self.running)
        for m in range(len(self.free)):
            while line:
                while self.grow(line[0], m):
                    pass
                if workers_of(self.running[line[0]]) < self.jobs[line[0]]["most"]:
                    break  # the node is full for it: it goes on with the next node
                line.pop(0)
