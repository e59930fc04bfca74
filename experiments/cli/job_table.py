"""Which jobs the optimum takes and a policy does not, as tables."""

from __future__ import annotations

from experiments.cli import console
from experiments.evaluation.job_comparison import JobComparison, totals

COLUMNS = (
    ("job", False),
    ("arrives", True),
    ("{who} finishes", True),
    ("utility", True),
    ("offline finishes", True),
    ("utility", True),
)


def print_jobs(rows: list[JobComparison], who: str, *, is_proven: bool) -> None:
    """Print the jobs that only one of the two solutions takes, and those that both take."""
    best = "the optimum" if is_proven else "the best schedule found"
    titles = {
        "offline": f"Jobs that {best} takes and {who} does not",
        "online": f"Jobs that {who} takes and {best} does not",
        "both": "Jobs that both take",
    }
    sums = totals(rows)
    columns = [(heading.format(who=who), numeric) for heading, numeric in COLUMNS]
    for name, title in titles.items():
        table = [_row(row) for row in rows if row.taken_by == name]
        console.print_text(f"\n{title}: {len(table) or 'none'}")
        if table:
            online, offline = (sums[name][f"{side}_utility"] for side in ("online", "offline"))
            total = ("total", "", "", console.number(online), "", console.number(offline))
            console.print_rows(columns, [*table, total])
    console.print_text(f"\nJobs that neither takes: {int(sums['neither']['jobs']) or 'none'}")
    if not is_proven:
        console.print_text("The offline schedule is not proven optimal: another may be better.")


def _row(row: JobComparison) -> tuple[str, ...]:
    cells = [
        (f"slot {side.completion}", console.number(side.utility)) if side else ("-", "-")
        for side in (row.online, row.offline)
    ]
    return (row.job_id, str(row.arrival), *cells[0], *cells[1])
