"""ElasticFlow in exact fractions on one machine of GPUs, written from its definition alone.

Jobs are dicts: `k`, `sizes` (numbers of workers of one GPU, increasing), `speed` by number of
workers, `due` (a time, or None for best effort). A plan of a job is a list of numbers of workers,
one a slot.
"""

from fractions import Fraction

NEAR = Fraction(1, 10**9)  # of the work that is left, which counts as none


class Reference:
    def __init__(self, gpus, slot):
        self.gpus, self.slot, self.jobs = gpus, Fraction(slot), {}
        self.seen = set()  # which branches were taken

    def lengths(self, now, due):
        """Lengths of the slots from now on, to the deadline."""
        at, found = Fraction(now), []
        while at < due:
            end = min(((at // self.slot) + 1) * self.slot, due)
            found.append(end - at)
            at = end
        return found

    def filled(self, job, left, free, now, given=None):
        """The plan under the least limit that is enough, tried one by one; None if none is."""
        lengths = self.lengths(now, job["due"])
        for limit in job["sizes"]:
            plan, done = [], Fraction(0)
            for slot, length in enumerate(lengths):
                if slot == 0 and given is not None:
                    workers = given
                else:
                    fitting = [n for n in job["sizes"] if n <= min(limit, free(slot))]
                    workers = max(fitting, default=0)
                plan.append(workers)
                done += length * job["speed"][workers]
                if done >= left - NEAR * max(1, left):
                    return plan
        return None

    def in_order(self, jobs, left, now):
        """Plans of all jobs in order of their deadlines; None for those that are too late."""
        plans = {}
        for job in sorted(jobs, key=lambda job: (job["due"], job["k"])):
            plans[job["k"]] = self.filled(job, left[job["k"]], self.free(plans), now)
        return plans

    def free(self, plans, without=None):
        """Capacity that a set of plans leaves free in a slot."""
        others = [plan for k, plan in plans.items() if plan and k != without]
        return lambda slot: self.gpus - sum(plan[slot] for plan in others if slot < len(plan))

    def cost(self, job, plan, left, now):
        """GPU time until the job is done."""
        total = Fraction(0)
        for workers, length in zip(plan, self.lengths(now, job["due"]), strict=False):
            if workers:
                time = min(length, left / job["speed"][workers])
                total, left = total + workers * time, left - time * job["speed"][workers]
        return total

    def gain(self, job, had, plans, left, now):
        """GPU time saved by the next size now, for each GPU more; with it the plan."""
        more = next((n for n in job["sizes"] if n > had), None)
        if more is None:
            return None
        rest = left[job["k"]]
        if job["due"] is None:
            speed = job["speed"]
            base = had or job["sizes"][0]
            saved, plan = base * rest / speed[base] - more * rest / speed[more], [more]
        else:
            plan = self.filled(job, rest, self.free(plans, job["k"]), now, more)
            saved = self.cost(job, plans[job["k"]], rest, now) - self.cost(job, plan, rest, now)
        return float(f"{float(saved / (more - had)):.12g}"), more, plan

    def spare(self, jobs, plans, having, left, now):
        """Steps of the largest gain, while there is room now."""
        gains = {job["k"]: self.gain(job, having[job["k"]], plans, left, now) for job in jobs}
        known = {job["k"]: job for job in jobs}
        while any(gains.values()):
            k = min(
                (k for k in gains if gains[k]),
                key=lambda k: (-gains[k][0], known[k]["due"] or Fraction(10**9), k),
            )
            _, more, _ = gains[k]
            if sum(having.values()) - having[k] + more > self.gpus:
                gains[k] = None
                continue
            self.seen.add("grown" if known[k]["due"] else "best effort grown")
            having[k] = more
            if known[k]["due"] is not None:
                plans[k] = self.filled(known[k], left[k], self.free(plans, k), now, more)
            gains[k] = self.gain(known[k], more, plans, left, now)

    def decide(self, now, left, came, gone):
        """Numbers of workers of all jobs from now on, and who is turned away."""
        left = {k: Fraction(amount) for k, amount in left.items()}
        for k in gone:
            self.jobs.pop(k, None)

        def due():
            return [job for job in self.jobs.values() if job["due"] is not None]

        for k, plan in self.in_order(due(), left, now).items():
            if plan is None:
                self.seen.add("late")
                self.jobs[k]["due"] = None
        away = []
        for job in came:
            self.jobs[job["k"]] = dict(job)
            if job["due"] is not None and None in self.in_order(due(), left, now).values():
                self.seen.add("turned away")
                away.append(job["k"])
                del self.jobs[job["k"]]
        plans = self.in_order(due(), left, now)
        having = {k: plan[0] for k, plan in plans.items()}
        self.seen |= {"waits for its slot" for workers in having.values() if not workers}
        best = [job for job in self.jobs.values() if job["due"] is None]
        for job in sorted(best, key=lambda job: job["k"]):
            least = job["sizes"][0]
            having[job["k"]] = least if sum(having.values()) + least <= self.gpus else 0
        self.spare(best, plans, having, left, now)
        self.spare(due(), plans, having, left, now)
        return having, away
