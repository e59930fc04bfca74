"""Workloads for the tests of the controllers: machines of GPUs, jobs of one GPU a worker."""

from __future__ import annotations

from oasis.simulator import Engine, Machine, PolicyJob, Site, Workload


def job(name, least=1, most=None, arrival=0.0, work=1000.0, asked=None, ps=0):
    """An elastic job; its parameter servers take nothing."""
    return PolicyJob(
        name,
        arrival,
        work,
        ((0, 1),),
        min_workers=least,
        max_workers=least if most is None else most,
        initial_workers=asked,
        fixed_ps=ps,
    )


def workload(*jobs, gpus=(4,), **site):
    machines = tuple(Machine(f"n{k}", (float(size),)) for k, size in enumerate(gpus))
    return Workload.of(Site(("gpu",), machines, **site), jobs)


def engine(policy, *jobs, until=0.0, gpus=(4,), **options):
    """A run up to and with the instant `until`."""
    made = Engine(workload(*jobs, gpus=gpus), policy, **options)
    while made.step(until):
        pass
    return made


def workers(run):
    """Workers by machine of every unfinished job, by its name."""
    return {
        progress.job.id: dict(progress.allocation.workers) for progress in run.state.jobs.values()
    }


class Told:
    """Jobs are as fast as they say."""

    coupled = False

    def rate(self, job, allocation, load):
        return job.speed(allocation.worker_count)
