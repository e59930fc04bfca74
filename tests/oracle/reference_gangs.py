"""Pods bound one by one, and how fast jobs train then: a small simulation of its own.

It shares nothing with the engine. Machines are (gpus, memory, cores, link in Gb/s). Jobs are dicts:
arrival, work, n workers and p parameter servers, `gradient` in MB, `step` in seconds, `worker_cpu`
and `ps_cpu` in cores. A worker takes a GPU and one of memory, a parameter server one of memory.
"""

from fractions import Fraction


def bandwidth_time(pods, job, machines):
    """Seconds on the network in a step: every worker sends to every server, then fetches."""
    workers = [machine for kind, machine in pods if kind == "worker"]
    servers = [machine for kind, machine in pods if kind == "ps"]
    out, into = {}, {}
    for w in workers:
        for s in servers:
            if w != s:
                part = job["gradient"] / len(servers)
                out[w] = out.get(w, 0.0) + part
                into[s] = into.get(s, 0.0) + part
    loads = [(size, m) for one in (out, into) for m, size in one.items()]
    return 2 * max((size / (125.0 * machines[m][3]) for size, m in loads), default=0.0)


def rate(k, bound, jobs, machines):
    """Work of job k in a second: nothing while a pod of it waits."""
    job, pods = jobs[k], bound[k]
    if len(pods) < job["n"] + job["p"]:
        return 0.0
    compute = job["step"]
    for kind, machine in pods:
        asked = sum(
            jobs[other][f"{what}_cpu"]
            for other, theirs in bound.items()
            if len(theirs) == jobs[other]["n"] + jobs[other]["p"]
            for what, where in theirs
            if where == machine
        )
        if job[f"{kind}_cpu"]:
            compute = max(compute, job["step"] * max(1.0, asked / machines[machine][2]))
    return job["n"] * job["step"] / (compute + bandwidth_time(pods, job, machines))


def pods_of(ks, jobs):
    """Pods of jobs that came together: one of each by turns, servers before workers."""
    lines = [["ps"] * jobs[k]["p"] + ["worker"] * jobs[k]["n"] for k in ks]
    longest = max(map(len, lines), default=0)
    return [
        (k, line[turn])
        for turn in range(longest)
        for k, line in zip(ks, lines, strict=True)
        if turn < len(line)
    ]


def idle_share(row, machine):
    """Mean free share of GPUs and memory, of those that the machine has."""
    shares = [Fraction(f, size) for f, size in zip(row, machine[:2], strict=True) if size]
    return sum(shares) / len(shares)


def simulate(jobs, machines):
    """End of each job, None if it never ends."""
    left = [job["work"] for job in jobs]
    free = [[gpus, memory] for gpus, memory, _, _ in machines]
    ends, bound, queue = [None] * len(jobs), {}, []
    now, to_come = 0.0, sorted(range(len(jobs)), key=lambda k: jobs[k]["arrival"])
    while True:
        speeds = {k: rate(k, bound, jobs, machines) for k in bound}
        times = [now + left[k] / speed for k, speed in speeds.items() if speed]
        times += [jobs[k]["arrival"] for k in to_come[:1]]
        if not times:
            return ends
        after = min(times)
        for k, speed in speeds.items():
            left[k] -= speed * (after - now)
        now = after
        for k in [k for k, speed in speeds.items() if speed and left[k] <= 1e-9]:
            ends[k] = now
            for kind, machine in bound.pop(k):
                free[machine][0] += kind == "worker"
                free[machine][1] += 1
        new = [k for k in to_come if jobs[k]["arrival"] <= now]
        to_come = to_come[len(new) :]
        bound |= {k: [] for k in new}
        queue += pods_of(new, jobs)
        for pod in list(queue):
            k, kind = pod
            need = [int(kind == "worker"), 1]
            fitting = [
                (idle_share(row, machines[m]), -m)
                for m, row in enumerate(free)
                if all(a <= b for a, b in zip(need, row, strict=True))
            ]
            if fitting:
                machine = -max(fitting)[1]
                free[machine] = [b - a for a, b in zip(need, free[machine], strict=True)]
                bound[k].append((kind, machine))
                queue.remove(pod)
