"""Optimus on one machine of GPUs and cores, written from its definition alone.

Jobs are dicts: `k`, `least` and `most` workers, `needed` and `most_ps` by number of workers,
`declared` speeds by number of workers (None: nobody says). A worker takes one GPU, a parameter
server one core.
Where few speeds are known, many coefficients are as near: a decision is that for given ones.
"""

from itertools import combinations

import numpy as np


def columns(w, p, kind):
    """Terms of the time of a step, each with a coefficient of its own."""
    if kind == "sync":
        found = {"1/w": 1 / w, "1": 1.0, "w": w}
        return found | ({"w/p": w / p, "p": p} if p else {})
    return {"1/w": 1 / w, "1": 1.0} | ({"1/p": 1 / p, "p/w": p / w} if p else {})


def fit(pairs, kind):
    """Non-negative least squares of relative errors: every choice of terms is tried."""
    if len({w for w, _ in pairs}) < 2:
        return {"1/w": 1.0}
    names = sorted({name for w, p in pairs for name in columns(w, p, kind)})
    rows = np.array(
        [[f * columns(w, p, kind).get(name, 0.0) for name in names] for (w, p), f in pairs.items()]
    )
    best = None
    for size in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), size):
            part = rows[:, chosen]
            found, *_ = np.linalg.lstsq(part, np.ones(len(rows)), rcond=None)
            if found.min() < -1e-12:
                continue
            error = float(np.square(part @ found - 1).sum())
            if best is None or error < best[0] - 1e-15:
                best = error, {names[c]: max(0.0, x) for c, x in zip(chosen, found, strict=True)}
    return best[1]


def rate(fitted, w, p, kind):
    return 1 / sum(fitted.get(name, 0.0) * x for name, x in columns(w, p, kind).items())


class Reference:
    def __init__(self, gpus, cores, interval, fit, rate, samples=5):
        self.room, self.interval, self.samples = (gpus, cores), interval, samples
        self.fit, self.rate = fit, rate
        self.jobs, self.looks, self.end, self.seen = {}, {}, 0.0, set()

    def pairs(self, job):
        """Speeds from sampling runs, and of looks at a job at work with the same tasks."""
        if job["declared"] is None:
            found = {(1, job["needed"][1]): 1.0}
        else:
            most = min(self.samples, job["most"])
            found = {(n, job["needed"][n]): job["declared"][n] for n in range(1, most + 1)}
        looks, observed = self.looks[job["k"]], False
        for b in range(1, len(looks)):
            (then, before, had), (now, left, held) = looks[b - 1], looks[b]
            if held != had or not held[0] or not now > then or not left < before:
                continue
            a = b - 1
            while a > 0 and looks[a - 1][2] == held:
                a -= 1
            if looks[a][1] > before:  # work was done with these tasks before
                found[held] = (before - left) / (now - then)
                observed = True
        return found, observed

    def decide(self, now, left, held, came, gone, changed):
        """(Workers, servers) of every job from now on."""
        for k in gone:
            self.jobs.pop(k)
        for job in came:
            self.jobs[job["k"]], self.looks[job["k"]] = job, []
        for k in self.jobs:
            self.looks[k].append((now, left[k], held[k]))
        if now < self.end - 1e-9 and not changed and any(held[k][0] for k in self.jobs):
            return self.within(held)
        self.end = now + self.interval
        having, known = {}, {k: self.pairs(job) for k, job in self.jobs.items()}
        models = {k: (self.fit(pairs), observed) for k, (pairs, observed) in known.items()}
        for k, job in sorted(self.jobs.items()):
            first = job["least"], job["needed"][job["least"]]
            if self.fits(having, k, first):
                having[k] = first
                self.seen.add("learned" if models[k][1] else "young")
        while True:
            steps = self.steps(having, models, left)
            if not steps or min(steps)[0] >= 0:
                self.seen.add("nobody gains" if steps else "full")
                return having | {k: (0, 0) for k in self.jobs if k not in having}
            _, k, which, more = min(steps)
            self.seen.add("server alone" if which else "worker")
            having[k] = more

    def within(self, held):
        """Within an interval those that wait begin with the fewest, where there is room."""
        having = {k: held[k] for k in self.jobs}
        for k, job in sorted(self.jobs.items()):
            first = job["least"], job["needed"][job["least"]]
            if not having[k][0] and self.fits(having, k, first):
                having[k] = first
                self.seen.add("begins within")
        return having

    def fits(self, having, k, more):
        """Return whether job k may have this much beside the others."""
        all_of_them = [*(tasks for other, tasks in having.items() if other != k), more]
        sums = zip(*all_of_them, strict=True)
        return all(sum(each) <= room for each, room in zip(sums, self.room, strict=True))

    def steps(self, having, models, left):
        """All steps that fit: what is lost by each, whose it is, its kind and what comes of it."""
        found = []
        for k, (w, p) in having.items():
            job, options = self.jobs[k], []
            if w < job["most"]:
                options.append((0, (w + 1, max(p, job["needed"][w + 1]))))
            if 0 < p < job["most_ps"][w]:
                options.append((1, (w, p + 1)))
            for which, more in options:
                if self.fits(having, k, more):
                    gain = self.gain(left[k], *models[k], (w, p), more)
                    found.append((-gain, k, which, more))
                else:
                    self.seen.add("no room")
        return found

    def gain(self, left, fitted, observed, had, more):
        """Time that is saved, for each part of the dominant resource, to 12 digits."""
        parts = [(b - a) / room for a, b, room in zip(had, more, self.room, strict=True)]
        before, after = left / self.rate(fitted, had), left / self.rate(fitted, more)
        saved = 0.0 if abs(before - after) <= 1e-9 * max(before, after) else before - after
        return float(f"{saved * (1 if observed else 0.95) / max(parts):.12g}")
