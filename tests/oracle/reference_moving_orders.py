"""Gittins and finish-time fairness in exact fractions, sharing nothing with the engine.

Jobs are (submitted, duration, gpus) in order of arrival; `servers` lists the GPUs of each server.
`rank(k, world)` is what the line is sorted by; all who wait are ranked anew at every event.
"""

from fractions import Fraction

from tests.oracle.reference_running_first import decide


class World:
    """Allocations, their begins, and the run time of each job."""

    def __init__(self, jobs, servers):
        self.jobs, self.servers = jobs, servers
        self.now = Fraction(0)
        self.ran = [Fraction(0) for _ in jobs]
        self.ended, self.active, self.where = {}, [], {}
        self.leases, self.past = {}, []  # end of each lease; (length of an interval, jobs in it)


def ends(jobs, servers, rank, moments, lease, fills):
    """End of each job; `moments(world)` are further times at which to decide while a job waits."""
    world, arrived = World(jobs, servers), 0
    while world.active or arrived < len(jobs):
        times = [world.now + jobs[k][1] - world.ran[k] for k in world.where]
        times += [Fraction(job[0]) for job in jobs[arrived : arrived + 1]]
        if len(world.where) < len(world.active):
            times += [time for time in moments(world) if time > world.now]
        step = min(times) - world.now
        world.past.append((world.now, step, len(world.active)))
        world.now += step
        for k in list(world.where):
            world.ran[k] += step
            if world.ran[k] == jobs[k][1]:
                world.ended[k] = world.now
                world.active.remove(k)
                del world.where[k]
        while arrived < len(jobs) and jobs[arrived][0] == world.now:
            world.active.append(arrived)
            arrived += 1
        if len(world.where) == len(world.active):
            continue  # nobody waits: all goes on
        line = sorted(world.active, key=lambda k: (rank(k, world), k))
        before = world.where
        world.where = decide(line, jobs, servers, before, fills)
        for k in world.where:
            if k not in before or world.leases[k] <= world.now:
                world.leases[k] = world.now + lease
    return [float(world.ended[k]) for k in range(len(jobs))]


def gittins(jobs, servers, levels, fills):
    """Levels in GPU-seconds; the distribution is that of the jobs that have ended."""

    def index(k, world):
        gpus = jobs[k][2]
        had = max([0] + [end for end in levels if end <= world.ran[k] * gpus])
        sizes = [jobs[j][1] * jobs[j][2] for j in world.ended]
        alive = [size for size in sizes if size > had]
        best = Fraction(0)
        for end in [end for end in levels if end > had] + [float("inf")]:
            ending = sum(size <= end for size in alive)
            spent = sum(min(size, end) - had for size in alive)
            if ending:
                best = max(best, Fraction(ending) / spent)
        return -best

    def moments(world):
        return [
            world.now + Fraction(end) / jobs[k][2] - world.ran[k]
            for k in world.where
            for end in levels
        ]

    return ends(jobs, servers, index, moments, 0, fills)


def finish_time_fairness(jobs, servers, lease, fills):
    """Lease in seconds."""

    def rank(k, world):
        if k in world.where and world.leases[k] > world.now:
            return 0, 0
        submitted, duration, gpus = jobs[k]
        if not duration:
            return 1, float("-inf")
        age = world.now - submitted
        others = Fraction(len(world.active))
        if age:
            others = sum(
                step * count for begin, step, count in world.past if begin >= submitted
            ) / Fraction(age)
        alone = duration * max(1, gpus * others / sum(servers))
        return 1, -(age + duration - world.ran[k]) / alone

    def moments(world):
        return [world.leases[k] for k in world.where]

    return ends(jobs, servers, rank, moments, lease, fills)
