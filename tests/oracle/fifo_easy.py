"""FIFO and EASY on one pool of GPUs: when each job starts. Shares nothing with the product."""


def starts(jobs, gpus, easy):
    """Start of each of `jobs`, rows of (submitted, duration, gpus) in order of submission."""
    start = [None] * len(jobs)
    times = sorted({row[0] for row in jobs})
    while times:
        now = times.pop(0)
        free, running = gpus, []
        for (_, duration, size), begin in zip(jobs, start, strict=True):
            if begin is not None and begin + duration > now:
                free -= size
                running.append((begin + duration, size))
        line = [k for k, row in enumerate(jobs) if start[k] is None and row[0] <= now]

        def begin(k, now=now, running=running):
            start[k] = now
            running.append((now + jobs[k][1], jobs[k][2]))
            if now + jobs[k][1] not in times:
                times.append(now + jobs[k][1])
            return jobs[k][2]

        while line and jobs[line[0]][2] <= free:
            free -= begin(line.pop(0))
        if easy and line:
            # The head is promised the first moment at which the ends of running jobs make room.
            room, promised = free, None
            for end in sorted({end for end, _ in running}):
                room += sum(size for other, size in running if other == end)
                if room >= jobs[line[0]][2]:
                    promised = end
                    break
            spare = room - jobs[line[0]][2]  # beside the head, from then on
            for k in line[1:]:
                in_time = now + jobs[k][1] <= promised
                if jobs[k][2] <= free and (in_time or jobs[k][2] <= spare):
                    free -= begin(k)
                    spare -= 0 if in_time else jobs[k][2]
        times.sort()
    return start
