from oasis.scheduling import (
    Allocation,  # noqa: F401 (for what tests add)
    BasePolicy,
    BestFit,
    Plan,
    Room,
    placement_named,  # noqa: F401 (no policy)
)


class Densest(BasePolicy):
    told_remaining = True

    def __init__(self, most: int = 100):
        self.most = most

    def reset(self, site):
        self.site, self.waiting = site, []

    def decide(self, view):
        plan, room = Plan(), Room(self.site, view.free())
        self.waiting += [*view.arrived, *view.evicted]
        self.waiting.sort(key=lambda job: (-job.utility(0.0) / job.work, job.index))
        for job in list(self.waiting):
            for workers in range(min(self.most, job.max_workers), job.min_workers - 1, -1):
                held = BestFit().place(room, job, workers, job.ps_needed(workers))
                if held is not None:
                    plan.changes[job.index] = held
                    self.waiting.remove(job)
                    break
        return plan


class Silent(Densest):
    """Tells nothing of its options, and something that is none."""

    name, parameters = "silent", {"taught": "by hand"}


class Idle(BasePolicy):
    def decide(self, view):
        return Plan()
