"""``oasis kubernetes``: the policies on a real cluster."""

from __future__ import annotations

from experiments.cli.commands.kubernetes import (
    explain,
    import_cluster,
    install,
    plan,
    quote,
    run,
    status,
)
from experiments.cli.verbose import CommandGroup

app = CommandGroup(
    no_args_is_help=True,
    help="Schedule training jobs on a Kubernetes cluster: OasisJobs are admitted and placed by "
    "any policy of the registry, as `oasis run` does in simulation.\n\n"
    "To begin: `install --apply`, label the nodes oasis-scheduler.io/role=worker and =ps, `run`, "
    "`kubectl create -f job.yaml`, then `status` and `explain`.",
)
app.command("install")(install.command)
app.command("run")(run.command)
app.command("status")(status.command)
app.command("plan")(plan.command)
app.command("quote")(quote.command)
app.command("explain")(explain.command)
app.command("import")(import_cluster.command)
