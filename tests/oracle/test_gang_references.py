"""Pods bound one by one, incomplete gangs and the speed of training, against a simulation apart."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oasis import (
    KubernetesDefault,
    Machine,
    PolicyJob,
    Site,
    TrainingSpeed,
    Workload,
    replay,
)
from tests.oracle import reference_gangs as reference

machines = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.integers(4, 9),
        st.sampled_from([2.0, 8.0, 1000.0]),
        st.sampled_from([1.0, 10.0]),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def job_lists(draw):
    """Up to five jobs; their works are such that no two of them end at one instant by chance."""
    return [
        {
            "arrival": float(draw(st.integers(0, 4))),
            "work": draw(st.integers(1, 30)) + 0.01234567 * (k + 1) ** 2,
            "n": draw(st.integers(1, 4)),
            "p": draw(st.integers(0, 2)),
            "gradient": draw(st.sampled_from([0.0, 25.0, 100.0])),
            "step": draw(st.sampled_from([0.2, 1.0])),
            "worker_cpu": draw(st.sampled_from([0.0, 1.5, 4.0])),
            "ps_cpu": draw(st.sampled_from([0.0, 1.0])),
        }
        for k in range(draw(st.integers(1, 5)))
    ]


def workload(jobs, sizes):
    made = tuple(
        Machine(f"m{k}", (float(gpus), float(memory)), cpu_cores=cores, link_gbps=link)
        for k, (gpus, memory, cores, link) in enumerate(sizes)
    )
    return Workload.of(
        Site(("gpu", "memory_gb"), made, partial_gangs=True),
        [
            PolicyJob(
                f"j{k}",
                job["arrival"],
                job["work"],
                ((0, 1), (1, 1)),
                ((1, 1),),
                min_workers=job["n"],
                max_workers=job["n"],
                fixed_ps=job["p"],
                gradient_mb=job["gradient"] if job["p"] else 0.0,
                step_time=job["step"],
                worker_cpu=job["worker_cpu"],
                ps_cpu=job["ps_cpu"],
            )
            for k, job in enumerate(jobs)
        ],
    )


GANG = {"work": 5.0, "n": 2, "p": 1, "gradient": 100.0, "step": 0.2, "worker_cpu": 4.0, "ps_cpu": 1}


@given(jobs=job_lists(), sizes=machines)
@example(jobs=[{"arrival": 0.0, **GANG}], sizes=[(1, 4, 2.0, 1.0), (1, 4, 8.0, 10.0)])
@example(
    jobs=[{"arrival": 0.0, **GANG, "n": 2, "p": 0} for _ in range(2)], sizes=[(3, 9, 8.0, 1.0)]
)
def test_jobs_end_when_the_simulation_apart_says(jobs, sizes):
    work = workload(jobs, sizes)
    outcome = replay(work, KubernetesDefault(), speed=TrainingSpeed())
    rejected = [times.refusal is not None for times in outcome.jobs]
    order = [int(job.id[1:]) for job in work.jobs]
    kept = [k for k, refused in zip(order, rejected, strict=True) if not refused]
    expected = reference.simulate([jobs[k] for k in kept], sizes)
    ends = [times.end for times, refused in zip(outcome.jobs, rejected, strict=True) if not refused]
    assert [end is None for end in ends] == [end is None for end in expected]
    assert [end for end in ends if end] == pytest.approx([end for end in expected if end], rel=1e-9)
