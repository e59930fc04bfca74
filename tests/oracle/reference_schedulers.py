"""Policies of rigid jobs on one clock, sharing nothing with the engine; each policy is a rule.

Jobs are (submitted, duration, gpus) in order of arrival; `servers` lists the GPUs of each server. A
job takes all its GPUs on one server. At one instant first all completions, then all arrivals in
file order, then one decision. Whole times stay whole, others are exact fractions.
"""

from fractions import Fraction
from math import inf


def exact(time):
    return int(time) if time == int(time) else Fraction(time)


class World:
    """Who is there, how long each has run, and where; starts and ends."""

    def __init__(self, jobs, servers):
        self.jobs = [(exact(submitted), exact(lasts), *more) for submitted, lasts, *more in jobs]
        self.servers, self.now, self.ran = servers, 0, [0] * len(jobs)
        self.active, self.where = [], {}  # in order of arrival; servers of those that run
        self.starts, self.ends = [None] * len(jobs), [None] * len(jobs)
        self.past = []  # (begin of an interval, its length, jobs in it)
        self.promised = []  # to each job while it was the head of the line

    def left(self, k):
        return self.jobs[k][1] - self.ran[k]

    def served(self, k):
        return self.ran[k] * self.jobs[k][2]

    def until_served(self, k, amounts):
        """When job k will have been served these GPU-seconds, if it goes on."""
        return [self.now + Fraction(end - self.served(k)) / self.jobs[k][2] for end in amounts]


def run(jobs, servers, decide, moments=lambda world: ()):
    """`decide(world)` says where who runs, at each event and at `moments(world)` to come."""
    world, arrived = World(jobs, servers), 0
    while world.active or arrived < len(jobs):
        times = [world.now + world.left(k) for k in world.where]
        times += [job[0] for job in world.jobs[arrived : arrived + 1]]
        step = min([*times, *(time for time in moments(world) if time > world.now)]) - world.now
        world.past.append((world.now, step, len(world.active)))
        world.now += step
        for k in list(world.where):
            world.ran[k] += step
            if not world.left(k):
                world.ends[k] = world.now
                world.active.remove(k)
                del world.where[k]
        while arrived < len(jobs) and world.jobs[arrived][0] == world.now:
            world.active.append(arrived)
            arrived += 1
        world.where = decide(world)
        for k in world.where:
            world.starts[k] = world.now if world.starts[k] is None else world.starts[k]
    return world


def best_fit(rooms, gpus):
    """The server with the least room that is enough, the lowest index among equals."""
    return min(((room, s) for s, room in enumerate(rooms) if room >= gpus), default=(0, None))[1]


def placed(world, line, fills):
    """Strict head of the line, unless `fills`: the jobs that run, each with its server.

    Who goes on stays where it is. Who begins takes what nobody has, and only failing that what jobs
    behind it have.
    """
    left, later, where = list(world.servers), dict(world.where), {}
    for k in line:
        gpus, server = world.jobs[k][2], later.pop(k, None)
        if server is None or left[server] < gpus:
            idle = list(left)
            for other, there in later.items():
                idle[there] -= world.jobs[other][2]
            server = best_fit(idle, gpus)
            server = best_fit(left, gpus) if server is None else server
        if server is not None:
            where[k] = server
            left[server] -= gpus
        elif not fills:
            break
    return where


def ordered(jobs, servers, fills, rank, moments=lambda world: ()):
    """All who are there stand in a line by `rank(k, world)`, and by arrival among equals."""

    def decide(world):
        return placed(world, sorted(world.active, key=lambda k: (rank(k, world), k)), fills)

    return run(jobs, servers, decide, moments)


def fifo(jobs, servers, fills=False):
    return ordered(jobs, servers, fills, lambda k, world: k not in world.where)


def sjf(jobs, servers, fills=False):
    return ordered(jobs, servers, fills, lambda k, world: (k not in world.where, world.jobs[k][1]))


def srtf(jobs, servers, fills=False):
    return ordered(jobs, servers, fills, lambda k, world: world.left(k))


def srsf(jobs, servers, fills=False):
    return ordered(jobs, servers, fills, lambda k, world: world.left(k) * world.jobs[k][2])


def las(jobs, servers, thresholds, fills=False):
    """Queues by attained GPU-seconds, in each the order of arrival."""
    return ordered(
        jobs, servers, fills, lambda k, world: below(k, world, thresholds), at(thresholds)
    )


def below(k, world, thresholds):
    return sum(world.served(k) >= end for end in thresholds)


def at(amounts):
    return lambda world: [time for k in world.where for time in world.until_served(k, amounts)]


def running_first(jobs, servers, thresholds, fills):
    """LAS as Tiresias's simulator keeps its queues: lists in which those that run stand first.

    A job enters its queue at the end. After each decision those of a queue that run are put before
    those that do not, in the order that they had.
    """
    line, queue_of = [], {}

    def decide(world):
        queues = {k: below(k, world, thresholds) for k in world.active}
        moved = [k for k in world.active if queue_of.get(k) != queues[k]]
        stayed = [k for k in line if k in queues and k not in moved]
        queue_of.update(queues)
        line[:] = sorted([*stayed, *moved], key=queues.get)
        where = placed(world, line, fills)
        line.sort(key=lambda k: (queues[k], k not in where))
        return where

    return run(jobs, servers, decide, at(thresholds))


def gittins(jobs, servers, levels, fills):
    """Levels in GPU-seconds; the distribution is that of the jobs that have ended."""

    def rank(k, world):
        had = max([0] + [end for end in levels if end <= world.served(k)])
        ended = [job for k, job in enumerate(world.jobs) if world.ends[k] is not None]
        alive = [lasts * gpus for _, lasts, gpus in ended if lasts * gpus > had]
        best = Fraction(0)
        for end in [end for end in levels if end > had] + [inf]:
            ending = sum(size <= end for size in alive)
            if ending:
                best = max(best, Fraction(ending) / sum(min(size, end) - had for size in alive))
        return -best

    return ordered(jobs, servers, fills, rank, at(levels))


def finish_time_fairness(jobs, servers, lease, fills):
    """Lease in seconds; who holds one stays."""
    leases = {}  # end of each

    def rank(k, world):
        if k in world.where and leases[k] > world.now:
            return 0, 0
        submitted, duration, gpus = world.jobs[k]
        if not duration:
            return 1, -inf
        age, others = world.now - submitted, Fraction(len(world.active))
        if age:
            parts = [step * count for begin, step, count in world.past if begin >= submitted]
            others = Fraction(sum(parts)) / age
        alone = duration * max(1, gpus * others / sum(servers))
        return 1, -(age + world.left(k)) / alone

    def decide(world):
        if len(world.where) == len(world.active):
            return world.where  # nobody waits: all goes on
        line = sorted(world.active, key=lambda k: (rank(k, world), k))
        where = placed(world, line, fills)
        for k in where:
            if k not in world.where or leases[k] <= world.now:
                leases[k] = world.now + lease
        return where

    return run(jobs, servers, decide, lambda world: [leases[k] for k in world.where])


def easy(jobs, servers):
    """EASY backfilling; with what the head of the line is promised."""
    promised = [[] for _ in jobs]

    def decide(world):
        where, free = dict(world.where), list(servers)
        for k, server in where.items():
            free[server] -= world.jobs[k][2]
        line = [k for k in world.active if k not in where]

        def start(k, server):
            free[server] -= world.jobs[k][2]
            where[k] = server
            line.remove(k)

        while line and best_fit(free, world.jobs[line[0]][2]) is not None:
            start(line[0], best_fit(free, world.jobs[line[0]][2]))
        if line:
            latest, beside = promise(world, line[0], free, where)
            promised[line[0]].append(latest)
        for k in line[1:]:
            _, duration, gpus = world.jobs[k]
            is_in_time = world.now + duration <= latest
            rooms = free if is_in_time else list(map(min, free, beside))
            server = best_fit(rooms, gpus)
            if server is not None:
                beside[server] -= 0 if is_in_time else gpus
                start(k, server)
        return where

    world = run(jobs, servers, decide)
    world.promised = promised
    return world


def promise(world, head, free, where):
    """Latest time at which the head of the line fits, and what is free beside it then."""
    rooms, gpus = list(free), world.jobs[head][2]
    ends = {k: world.now + world.left(k) for k in where}
    for time in sorted(set(ends.values())):
        for k in [k for k in where if ends[k] == time]:
            rooms[where[k]] += world.jobs[k][2]
        server = best_fit(rooms, gpus)
        if server is not None:
            rooms[server] -= gpus
            return time, rooms
    raise AssertionError("it fits on no empty server")


def by_owner(jobs, servers):
    """DRF of jobs (submitted, duration, gpus, owner): who has fewest GPUs gets the next job."""

    def decide(world):
        untried, free, where = list(world.active), list(servers), {}
        held = dict.fromkeys((job[3] for job in jobs), 0)
        while untried:
            k = min(untried, key=lambda k: (held[jobs[k][3]], k))
            untried.remove(k)
            server = best_fit(free, jobs[k][2])
            if server is not None:
                free[server] -= jobs[k][2]
                held[jobs[k][3]] += jobs[k][2]
                where[k] = server
        return where

    return run(jobs, servers, decide)
