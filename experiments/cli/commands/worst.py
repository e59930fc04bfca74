"""``oasis worst``: the instance of a given size on which a policy's ratio is largest."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.files import is_stdout
from experiments.cli.progress import progress
from experiments.cli.results import write_instance
from experiments.evaluation.policies import OASIS, entry_of
from oasis.model.errors import InputError
from oasis.model.summary import how_many

WHERE = {"rich_help_panel": "Where to look"}
SIZE = flags.COUNT | WHERE


def _values(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError("", "expected LOW,HIGH, such as 1,100") from None
    return low, high


VALUES = flags.read_by(_values, "LOW,HIGH") | WHERE


def command(
    *,
    policy: flags.APolicy = OASIS,
    assignments: flags.Set = None,
    output: flags.Output,
    jobs: Annotated[int, "Jobs.", SIZE] = 4,
    servers: Annotated[int, "Servers, all alike.", SIZE] = 1,
    slots: Annotated[int, "Slots of the horizon.", SIZE] = 4,
    gpus: Annotated[int, "GPUs of a server; a worker has at most as many.", SIZE] = 4,
    workers: Annotated[int, "Most workers of a job.", SIZE] = 4,
    work: Annotated[int, "Most worker-slots of a job.", SIZE] = 8,
    values: Annotated[Any, "The smallest and the largest value of a job.", VALUES] = "1,100",
    evaluations: Annotated[int, "Instances to try; each optimum is proven.", flags.COUNT] = 1000,
    time_limit: Annotated[
        float | None,
        "Begin no further instance after this time: 60, 5m, 1h. The one under way is "
        "solved first. What is found then depends on the speed of the machine. [default: none]",
        flags.TIME,
    ] = None,
    seed: Annotated[int, "Seed of the search.", {"metavar": "N"}] = 0,
) -> int:
    """Search for the instance on which a policy's competitive ratio is largest.

    How bad can a policy get on four jobs? A local search changes jobs as long as the ratio grows,
    and starts again elsewhere. The instance goes to a file that every command reads, and its ratio
    is proven; another instance may still be worse. For OASiS, the bound of the corrected Theorem 4
    on this instance stands beside it. The same seed finds the same instance. Ctrl-C ends the search
    with the worst so far, and exit code 3.

    Example: oasis worst --policy fifo --jobs 3 -o worst.json
    """
    from experiments.evaluation.worst import Space, worst_case  # noqa: PLC0415 (needs an extra)

    (options,) = flags.choose_options([policy], assignments).values()
    entry = entry_of(policy)
    sizes = ("jobs", "servers", "slots", "gpus", "workers", "work", "values")
    names = (*sizes, "evaluations", "time_limit", "seed")
    with flags.naming_flags(names), progress() as show:

        def tell(count: int, ratio: float) -> None:
            largest = f"largest ratio {console.number(ratio)}"
            show(f"{count} of {evaluations} instances, {largest}", count, evaluations)

        worst = worst_case(
            lambda instance: entry.make(instance, options),
            Space(jobs, servers, slots, gpus, workers, work, values),
            evaluations=evaluations,
            time_limit=time_limit,
            seed=seed,
            on_progress=tell,
        )
    about = {"policy": policy, "evaluations": worst.evaluations, "seed": seed}
    instance = replace(worst.instance, metadata={"worst_case": about})
    write_instance(instance, output)
    result = worst.result
    facts = [(policy, f"{console.number(result.online_utility)}")]
    facts += [("optimum", f"{console.number(result.offline_objective)} (proven)")]
    facts += [("largest ratio found", "unbounded: it earned nothing")]
    if result.ratio is not None:
        facts[-1] = ("largest ratio found", f"{console.number(result.ratio)} (proven)")
    if (bound := result.corrected_ratio_bound) is not None:
        why = "Theorem 16" if result.bound_2alpha is not None else "weak duality"
        facts += [("theory on this instance", f"at most {console.number(bound)} ({why})")]
    facts += [("instances tried", f"{worst.evaluations}, from {how_many(worst.starts, 'start')}")]
    if not is_stdout(output):
        console.print_facts(f"{policy} at its worst", facts)
    if not worst.is_complete:
        console.note(f"ended after {worst.evaluations} of {how_many(evaluations, 'instance')}")
    return DONE if worst.is_complete else LIMIT
