"""One decision of DRAGON after the other, written from the paper's Fig. 5 with lists of pods."""

from collections import Counter

from controller_pods import drop, fits, idle, one_by_one, one_node, take, workers_of


class Reference:
    """What DRAGON answers at each instant: `sizes` are the machines, as [GPUs, memory]."""

    def __init__(self, sizes, theta, patience, reading="text", scaling=True):
        self.sizes, self.theta, self.patience = sizes, theta, patience
        self.text, self.scaling = reading == "text", scaling
        self.waiting, self.running, self.jobs, self.since = [], {}, {}, {}
        self.gpus_idle = [[] for _ in sizes]  # of each idle GPU, since when
        self.last, self.seen = 0.0, Counter()

    def decide(self, now, free, came, gone, evicted):
        """Pods of the jobs that change."""
        self.free, before = [list(row) for row in free], dict(self.running)
        for job in (*gone, *evicted):
            before.pop(job["k"], None)
            self.running.pop(job["k"], None)
            self.waiting = [k for k in self.waiting if k != job["k"]]
        for job in (*came, *evicted):
            self.jobs[job["k"]], self.since[job["k"]] = job, now
            self.waiting = sorted([*self.waiting, job["k"]])
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
            (self.grow_text if self.text else self.grow_code)(now, before)
            for ages, (left, _) in zip(self.gpus_idle, self.free, strict=True):
                del ages[: len(ages) - left]  # the oldest were used
        changed = {k: pods for k, pods in self.running.items() if before.get(k) != pods}
        self.last = now if changed else self.last
        return changed

    def launch(self, k, workers):
        pods = (self.pack if self.text else self.ladder)(self.jobs[k], workers)
        if pods:
            self.running[k] = pods
            self.waiting.remove(k)
        return pods

    def pack(self, job, workers):
        """Fewest machines; parameter servers beside most workers."""
        found = one_node(self.free, self.sizes, job, workers)
        if found:
            return found
        room = Counter()
        for m in range(len(self.free)):
            while fits(self.free, job, [("worker", m)] * (room[m] + 1)):
                room[m] += 1
                take(self.free, job, [("worker", m)] * room[m], -1)
        order = sorted(room, key=lambda m: (-min(room[m], workers), m))
        pods = [("worker", m) for m in order for _ in range(room[m])][:workers]
        if len(pods) < workers:
            return None
        take(self.free, job, pods)
        there = Counter(m for _, m in pods)
        beside = one_by_one(
            self.free,
            job,
            ["ps"] * job["p"],
            lambda hosts, _: min(hosts, key=lambda m: (-there[m], m)),
        )
        if beside is None:
            take(self.free, job, pods, -1)
        return None if beside is None else pods + beside

    def ladder(self, job, workers):
        spread = lambda hosts, _: min(hosts, key=lambda m: (-idle(self.free, self.sizes, m), m))  # noqa: E731
        for count in (workers, job["least"]):
            kinds = ["worker"] * count + ["ps"] * job["p"]
            pods = one_node(self.free, self.sizes, job, count) or one_by_one(
                self.free, job, kinds, spread
            )
            if pods:
                return pods
        return one_by_one(self.free, job, kinds, lambda hosts, _: hosts[0])

    def urgent(self, now):
        asked = "n" if self.text else "least"
        totals = [sum(row[r] for row in self.sizes) for r in (0, 1)]

        def share(k):
            job = self.jobs[k]
            memory = job[asked] * job["memory"] + job["p"]
            return max(job[asked] / totals[0], memory / totals[1])

        late = [k for k in self.waiting if self.since[k] + self.theta <= now]
        if not late:
            return False
        k = min(late, key=lambda k: (share(k), k))
        spare = {v: workers_of(p) - self.jobs[v]["least"] for v, p in self.running.items()}
        victims = [v for v in self.running if spare[v]]
        if self.text:
            victims.sort(key=lambda v: -spare[v])
        elif sum(spare.values()) <= self.jobs[k][asked]:
            victims = []
        kept, free = dict(self.running), [list(row) for row in self.free]
        while not self.launch(k, self.jobs[k][asked]):
            if not victims:
                self.running, self.free = kept, free
                self.seen["in vain"] += 1
                return False
            v = victims.pop(0)
            while workers_of(self.running[v]) > self.jobs[v]["least"]:
                less = drop(self.running[v])
                gone = Counter(self.running[v]) - Counter(less)
                take(self.free, self.jobs[v], list(gone.elements()), -1)
                self.running[v] = less
            self.seen["shrunk"] += 1
        self.seen["urgent"] += 1
        return True

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

    def grow_text(self, now, before):
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

    def grow_code(self, now, before):
        if self.last + self.patience > now or self.running != before:
            return
        able = list(self.running)
        while able:
            able = [k for k in able if self.grow(k, self.home(k))]

    def home(self, k):
        kind = "ps" if self.jobs[k]["p"] else "worker"
        there = Counter(m for each, m in self.running[k] if each == kind)
        return min(there, key=lambda m: (-there[m], m))
