"""What SpeCon's manager knows of the workers, and Algorithms 2 and 3, which use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from baselines.specon.container import Category, Container

Weights = Mapping[Category, float]
HasRoom = Callable[[Container, int], bool]
Usage = Callable[[int], float]
On = Mapping[int, Sequence[Container]]


def count(containers: Sequence[Container], *categories: Category) -> int:
    """How many of `containers` are in one of `categories`."""
    return sum(container.category in categories for container in containers)


def worker_score(containers: Sequence[Container], weights: Weights) -> float:
    """Line 3 of Algorithm 2: the score of a worker with these containers.

    Examples
    --------
    >>> from oasis.scheduling import PolicyJob
    >>> two = [Container(PolicyJob(name, 0.0, 1.0, ())) for name in "ab"]
    >>> two[0].category = Category.WATCHING
    >>> worker_score(two, dict(zip(Category, (2.0, 1.5, 1.0))))
    3.5
    """
    return sum(weights[each] * count(containers, each) for each in Category)


def choose_host(
    container: Container, on: On, weights: Weights, has_room: HasRoom, usage: Usage
) -> int | None:
    """Algorithm 2: the worker to which `container` moves; None if it stays where it is.

    It stays if no score is lower than that of its own worker (lines 8-10), and else goes to the
    worker with the lowest score, among several to that with the lowest resource consumption.
    Workers that have no room for what it reserves, which the paper's containers do not, are left
    out.

    Parameters
    ----------
    container : Container
        The container that asks to be moved.
    on : mapping of int to sequence of Container
        The containers on each worker that is there.
    weights : mapping of Category to float
        w_pc, w_wc and w_cc.
    has_room : callable
        Whether a worker has room for a container.
    usage : callable
        R(w_j, t), the resource consumption of a worker.
    """
    scores = {worker: worker_score(containers, weights) for worker, containers in on.items()}
    assert container.home is not None
    own = scores[container.home]
    for score in sorted({score for score in scores.values() if score < own}):
        able = [w for w in scores if scores[w] == score and has_room(container, w)]
        if able:
            return min(able, key=lambda worker: (usage(worker), worker))
    return None


def rebalance(
    on: On, now: float, move: Callable[[Container, int], None], has_room: HasRoom
) -> None:
    """Algorithm 3: even out the workers by moving containers that have converged.

    The converged duration is counted from when a container was found to have converged, as the
    text says (section V-C), not from when it was marked as migrated (line 1), as not all are; one
    that has not converged has no such duration and is not moved.
    Read: a container that was rebalanced is not rebalanced again, which is what its mark is for;
    in lines 26-31, which print w_i for w_j and would move one container again and again, each
    worker with room takes another container.

    Parameters
    ----------
    on : mapping of int to sequence of Container
        The containers on each worker that is there, by index.
    now : float
        The time.
    move : callable
        Moves a container to a worker.
    has_room : callable
        As for `choose_host`.
    """
    everyone = {id(each): each for containers in on.values() for each in containers}
    if not everyone:
        return
    factor = sum(map(len, on.values())) // len(on)  # line 9
    line = [
        each
        for each in everyone.values()
        if each.home is not None and not each.rebalanced and each.category is Category.CONVERGED
    ]
    line.sort(key=lambda each: (now - (each.converged_at or 0.0), each.job.index))
    idle = [worker for worker, containers in on.items() if not containers]
    if idle:  # lines 10-18
        candidates = idle if factor > 0 else []
        sources = set(on)
    else:  # lines 19-31
        candidates = [worker for worker in on if len(on[worker]) < factor - 1]
        sources = set(on) - set(candidates)
    for worker in candidates:
        able = (each for each in line if each.home in sources and has_room(each, worker))
        found = next(able, None)
        if found is not None:
            line.remove(found)
            found.rebalanced = True
            move(found, worker)
