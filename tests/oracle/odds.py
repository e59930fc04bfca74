"""Jobs at odds: which two of them get along depends on the server.

Patterns often cover in halves what no placement of such jobs holds, so that the decomposition
needs its last resort.
"""

from dataclasses import replace
from itertools import combinations

from hypothesis import strategies as st

from oasis import Cluster, Constant, Instance, Job, Server
from tests.strategies import of

CROSSED = ({(0, 1), (2, 3)}, {(0, 2), (1, 3)})  # pairs that get along, by server


def at_odds(friends: tuple[set[tuple[int, int]], ...], *jobs: Job) -> Instance:
    """Jobs of which two fit on a server together only if they are its friends there."""
    pairs = list(combinations(range(len(jobs)), 2))
    names = tuple(f"{i}-{j}" for i, j in pairs)
    servers = tuple(
        Server(f"w{h}", {f"{i}-{j}": 2.0 if (i, j) in here else 1.0 for i, j in pairs})
        for h, here in enumerate(friends)
    )
    asking = tuple(
        replace(
            job,
            worker={name: 1.0 for name, pair in zip(names, pairs, strict=True) if k in pair},
        )
        for k, job in enumerate(jobs)
    )
    horizon = 1 + max(job.arrival for job in jobs)
    return Instance(horizon, Cluster(names, servers, (Server("p", {}),), 1.0), asking)


def unit_job(name: str, value: float, arrival: int = 0, work: int = 1) -> Job:
    """`work` worker-slots, one worker at a time, no parameter server."""
    return Job(name, arrival, work, 1, 1, 1.0, 0.0, {}, {}, Constant(value))


@st.composite
def quarrels(draw: st.DrawFn, most_jobs: int = 5) -> Instance:
    """Jobs at odds, two or three servers, one or two slots."""
    count = draw(of(4, *range(3, most_jobs + 1)))
    pairs = list(combinations(range(count), 2))
    here = st.sets(st.sampled_from(pairs), min_size=1, max_size=4)
    friends = tuple(draw(st.lists(here, min_size=2, max_size=3)))
    last = draw(of(0, 1))
    jobs = [
        unit_job(f"j{i}", draw(of(1.0, 1.5, 2.0)), draw(of(0, last)), draw(of(1, 1, 1 + last)))
        for i in range(count - 1)
    ]
    return at_odds(friends, *jobs, unit_job("last", draw(of(1.0, 2.0)), last))


@st.composite
def crossed(draw: st.DrawFn) -> Instance:
    """Four jobs and maybe more, of whom each server splits four into two pairs, not the same ones.

    Two halves of each pair are four jobs; whole, never more than two or three fit at once.
    """
    one, other, _ = draw(st.permutations([{(0, 1), (2, 3)}, {(0, 2), (1, 3)}, {(0, 3), (1, 2)}]))
    last, more = draw(of(0, 1)), draw(of(0, 1))
    jobs = []
    for k in range(4 + more):
        work = draw(of(1, 1 + last))
        arrival = draw(of(last, last, 0)) if work == 1 else 0
        jobs.append(unit_job(f"j{k}", draw(of(1.0, 1.5, 2.0)), arrival, work))
    return at_odds((one, other), *jobs, *([unit_job("last", 1.0, last)] if last else []))
