"""One self-contained page of results: what was run, tables, pictures, proofs (docs/cli)."""

from oasis.model.extras import require

require("a report", "jinja2", "matplotlib")

from experiments.report.sections import ReportTable, Section, report_page, section_of, sweep_section

__all__ = [
    "ReportTable",
    "Section",
    "report_page",
    "section_of",
    "sweep_section",
]
