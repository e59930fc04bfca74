"""One self-contained page of results: what was run, tables, pictures, proofs (docs/cli)."""

from oasis.extras import require

require("a report", "jinja2", "matplotlib")

from experiments.report.sections import ReportTable as ReportTable
from experiments.report.sections import Section as Section
from experiments.report.sections import report_page as report_page
from experiments.report.sections import section_of as section_of
from experiments.report.sections import sweep_section as sweep_section
