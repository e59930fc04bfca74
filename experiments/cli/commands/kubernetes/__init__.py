"""``oasis kubernetes``: the policies on a real cluster."""

from __future__ import annotations

from experiments.cli.command import CommandGroup
from experiments.cli.commands.kubernetes import reading, reporting, running

app = CommandGroup(
    no_args_is_help=True,
    help="Schedule training jobs on a Kubernetes cluster: OasisJobs are admitted and placed by "
    "any policy of the registry, as `oasis run` does in simulation.\n\n"
    "To begin: `install --image=IMAGE | kubectl apply -f -`, label the nodes "
    "oasis-scheduler.io/role=worker and =ps, `kubectl create -f job.yaml`, then `status` and "
    "`explain`.",
)
app.command("install")(running.install)
app.command("run")(running.run)
app.command("status")(reading.status)
app.command("plan")(reading.plan)
app.command("quote")(reading.quote)
app.command("explain")(reading.explain)
app.command("import")(reporting.import_cluster)
app.command("report")(reporting.report)
