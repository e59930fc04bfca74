"""LAS as Tiresias's simulator keeps its queues: lists in which those that run stand first.

It shares nothing with the engine. Jobs are (submitted, duration, gpus) in order of arrival, times
and thresholds in seconds and GPU-seconds. A job enters its queue at the end. After each decision
those of a queue that run are put before those that do not, in the order that they had.
"""


def ends(jobs, servers, thresholds, fills):
    """End of each job."""
    queues = [[] for _ in range(len(thresholds) + 1)]
    served, found = [0.0] * len(jobs), [None] * len(jobs)  # GPU-seconds; end
    where, now, arrived = {}, 0.0, 0
    while any(queues) or arrived < len(jobs):
        steps = [job[0] - now for job in jobs[arrived : arrived + 1]]
        for k in where:
            gpus = jobs[k][2]
            steps.append(jobs[k][1] - served[k] / gpus)
            steps += [(end - served[k]) / gpus for end in thresholds if end > served[k]]
        step = min(steps)
        now += step
        for k in where:
            served[k] += step * jobs[k][2]
        for k in sorted(where):
            queue = next(queue for queue in queues if k in queue)
            below = sum(served[k] >= end for end in thresholds)
            if served[k] == jobs[k][1] * jobs[k][2]:
                queue.remove(k)
                del where[k]
                found[k] = now
            elif queue is not queues[below]:
                queue.remove(k)
                queues[below].append(k)
        while arrived < len(jobs) and jobs[arrived][0] == now:
            queues[0].append(arrived)
            arrived += 1
        where = decide([k for queue in queues for k in queue], jobs, servers, where, fills)
        queues = [sorted(queue, key=lambda k: k not in where) for queue in queues]
    return found


def decide(line, jobs, servers, before, fills):
    """The jobs that run, each with its server; best fit, free servers first."""
    taken, later, where = [0] * len(servers), dict(before), {}
    for k in line:
        gpus, mine = jobs[k][2], later.pop(k, None)
        left = [size - used for size, used in zip(servers, taken, strict=True)]
        idle = [
            room - sum(jobs[j][2] for j in later if later[j] == s) for s, room in enumerate(left)
        ]
        choices = [[s] for s in [mine] if s is not None and left[s] >= gpus]
        for rooms in (idle, left):
            choices.append(
                sorted((s for s in range(len(left)) if rooms[s] >= gpus), key=rooms.__getitem__)
            )
        server = next((choice[0] for choice in choices if choice), None)
        if server is not None:
            where[k] = server
            taken[server] += gpus
        elif not fills:
            break
    return where
