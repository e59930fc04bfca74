"""Sections of a report, from documents of results and tables of sweeps; and the page, in HTML."""

from __future__ import annotations

import base64
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from experiments.evaluation import tables
from experiments.evaluation import whatif_result as texts
from experiments.evaluation.comparison import Comparison, JobComparison, compare_jobs
from experiments.evaluation.pairs import pairs_of_comparison, pairs_of_sweep, said
from experiments.evaluation.provenance import (
    SCHEDULES,
    check_document,
    file_reference,
    named_instance,
)
from experiments.evaluation.tables import Facts, certificate_facts, number, quote_facts
from experiments.evaluation.whatif_result import RECORDED, WhatIf
from experiments.machines import machines_text
from experiments.plotting.comparison import means_of, sweep_page
from experiments.plotting.files import NEED_INSTANCE, kind_of, picture_of, svg_text
from experiments.plotting.whatif import pictures
from oasis.certify.certificate import certify
from oasis.model.document import Reader, entry, list_of, mapping, object_of, optional, text
from oasis.model.instance import Instance
from oasis.model.summary import how_many
from oasis.results import result_from_dict
from oasis.simulator.elastic import FORMAT
from oasis.simulator.outcome import UTILISATION
from oasis.solvers import Status
from oasis.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


# Control characters and half surrogates, which XML cannot have in any form.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _as_xml(text: str) -> str:
    """Replace each character that XML forbids by a replacement character."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def picture(figure: Figure) -> str:
    """Draw `figure` and return it as a data URL for the page."""
    drawn = base64.b64encode(_as_xml(svg_text(figure)).encode("utf-8"))
    return f"data:image/svg+xml;base64,{drawn.decode('ascii')}"


MOST_ROWS = 200  # of a table; a page of thousands of rows helps no reader


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of text; each column has a heading and whether it holds numbers."""

    title: str
    columns: tuple[tuple[str, bool], ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Section:
    """What a page shows of one result."""

    name: str
    title: str
    was_run: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]] = ()
    tables: tuple[ReportTable, ...] = ()
    proofs: Sequence[tuple[str, str]] = ()
    again: tuple[str, ...] = ()
    picture: str = ""
    notes: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()  # beside the first: addresses and captions
    remarks: tuple[str, ...] = ()


def report_page(sections: Sequence[Section], title: str = "OASiS: results") -> str:
    """Render sections as an HTML page."""
    folder = files("experiments.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    about = {"title": title, "style": style, "version": __version__, "most_rows": MOST_ROWS}
    page = template.render(sections=sections, **about)
    return _as_xml(page) + "\n"


def whatif_section(
    name: str, data: Mapping[str, Any], result: WhatIf, changed: tuple[str, ...]
) -> Section:
    """Make the section of a what-if result in file `name`; `changed`: notes on changed files."""
    about = result.about
    missing = [f"Without {', '.join(result.missing)}: interrupted."] if result.missing else []
    missing += [f"Failed: {failure}" for failure in about.get("failed", ())]
    facts = [("jobs", f"{about['jobs']:,}"), ("machines", machines_text(result.first.machines))]
    names = ("kept", "format", "placement", "utilities", "version")
    facts += [(key, str(about[key])) for key in names if about.get(key) is not None]
    facts += [("as read", note) for note in about.get("notes", ())]
    policies = {name: row for name, row in result.first.policies.items() if name != RECORDED}
    return Section(
        name=name,
        title=texts.jobs_text(result),
        was_run=[*facts, *_of_trace(data), *_of_policies(policies)],
        tables=tuple(ReportTable(*one) for one in texts.tables(result)),
        again=commands_of(name, data),
        notes=(*missing, *changed),
        answer=texts.answer(result),
        pictures=tuple((picture(figure), caption) for figure, caption in pictures(result)),
        remarks=tuple(texts.notes(result)),
    )


def _of_trace(data: Mapping[str, Any]) -> Facts:
    return [(f"trace {key}", str(value)) for key, value in (data.get("trace") or {}).items()]


def _of_policies(rows: Mapping[str, Mapping[str, Any]]) -> Facts:
    """Return a line with the options of each policy."""
    each = {
        policy: [f"{name}={value_text(value)}" for name, value in row.get("parameters", {}).items()]
        for policy, row in rows.items()
    }
    return [(f"options of {name}", ", ".join(some) or "none") for name, some in each.items()]


def commands_of(name: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the commands that repeat a result; `name` is the file of the result."""
    rerun = (f"oasis run --from {shlex.quote(name)}",) if data.get("kind") == "run" else ()
    return (*rerun, str(data["command"])) if "command" in data else rerun


def changed_files(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each file (code, options, trace) that has changed since the result."""
    rows = [data, *(data.get("policies") or {}).values()]
    named = [one for row in rows for one in row.get("policy_files", ())]
    trace = data.get("trace") or {}
    if trace.get("file") and trace.get("sha256"):
        named.append({"of": "the trace", **trace})
    sentences = []
    for one in named:
        file = Path(one["file"])
        now = file_reference(file)["sha256"]
        if now != one["sha256"]:
            how = "is not there" if not file.exists() else "has changed since"
            sentences.append(f"The command does not make it again: {file} ({one['of']}) {how}.")
    return tuple(dict.fromkeys(sentences))


CHECKED = "every schedule satisfies (2)-(13), and every figure is what it is computed anew"
NOT_AGAIN = "not checked again, the instance is not there; the command did before it wrote this"


def proofs_of(kind: str, result: Any, instance: Instance | None) -> Facts:
    """Return lines on what is proven or verified of a result of this kind."""
    if kind == "quote":
        return [("none", "a quote commits nothing, and runs no schedule")]
    if kind == "replay":
        return [("checked", "each answer of a policy, against the machines, before it was done")]
    if kind == "compare":
        text = "the schedules of each policy satisfied (2)-(13) when the command ran"
        proofs = [("verified", text), ("not again", "a comparison holds figures, no schedules")]
        optimum = result.about.get("optimum")
        if optimum is not None:
            text = f"{number(optimum['upper_bound'])}, by {optimum['bound_by'] or '-'}"
            proofs.append(("none earns more than", text))
        return proofs
    proofs = [("verified", CHECKED if instance is not None else NOT_AGAIN)]
    if kind == "run" and result.bounds is not None and instance is not None:
        proofs += certificate_facts(result.policy, certify(instance, result))
    if kind == "solve":
        proofs += _of_offline(result)
    if kind == "ratio":
        proofs += _of_offline(result.offline)
        if result.certificate is not None:
            proofs += certificate_facts(result.run.policy, result.certificate)
    if kind == SCHEDULES:
        proofs.append(("bound", "none: schedules alone do not say how far from optimal they are"))
    return proofs


def _of_offline(result: Any) -> Facts:
    """Return lines on the best schedules and the upper bound of an offline solve."""
    agree = "they agree: optimal" if result.status is Status.OPTIMAL else f"{result.status}"
    return [
        ("a schedule earns", f"{number(result.objective)}, found by {result.objective_by or '-'}"),
        ("none earns more than", f"{number(result.upper_bound)}, by {result.bound_by or '-'}"),
        ("so", agree),
    ]


TAKEN = (
    *(("job", False), ("taken by", False), ("arrives", True)),
    *(("online finishes", True), ("utility", True), ("offline finishes", True), ("utility", True)),
)
VERIFIABLE = ("run", "solve", "ratio", SCHEDULES)


def section_of(name: str, data: Mapping[str, Any], instance: Instance | None) -> Section:
    """Make the section of a result; with `instance`, the result is verified again."""
    kind = kind_of(data)
    result = None if kind == SCHEDULES else result_from_dict(data)
    for part, reader in _ADDED.items():
        if part in data:
            entry(data, part, reader)
    if instance is not None and kind in VERIFIABLE:
        # A page states proofs, so it does not believe a file: everything is computed anew.
        check_document(instance, data)
    if isinstance(result, WhatIf):
        return whatif_section(name, data, result, changed_files(data))
    title, came_out, shown = _contents(kind, data, result, instance)
    notes = list(changed_files(data))
    if isinstance(result, Comparison):
        notes = [*tables.unfinished_notes(result), *notes]
    if instance is None and kind in VERIFIABLE:
        file, _ = named_instance(data)
        where = f"its instance, {file}, is not there" if file else "it names no instance file"
        lacks = "no picture" if kind in NEED_INSTANCE else "no jobs that make the difference"
        notes.append(f"Not verified again, and {lacks}: {where}. --instance names it.")
    is_drawn = instance is not None or kind not in NEED_INSTANCE
    return Section(
        name=name,
        title=title,
        was_run=_was_run(data),
        facts=came_out,
        tables=tuple(shown),
        proofs=proofs_of(kind, result, instance),
        again=commands_of(name, data),
        picture=picture(picture_of(data, Path(name).stem, instance)) if is_drawn else "",
        answer=tuple(said(pairs_of_comparison(result))) if isinstance(result, Comparison) else (),
        notes=tuple(notes),
    )


def _file(data: Any) -> Mapping[str, Any]:
    """Check a reference to a file with its digest."""
    for name in ("of", "file"):
        entry(data, name, text)
    return mapping(data)


# What commands add to a result that its own reader leaves alone.
_ADDED: Mapping[str, Reader[Any]] = {
    "policy": text,
    "parameters": mapping,
    "offline_parameters": mapping,
    "policy_files": list_of(_file),
    "trace": optional(object_of(optional(text))),
    "command": text,
    "utilisation": UTILISATION,
}


def _contents(
    kind: str, data: Mapping[str, Any], result: Any, instance: Instance | None
) -> tuple[str, Facts, list[ReportTable]]:
    """Return title, facts and tables of a result by its kind."""
    policies = how_many(len(data.get("policies", ())), "policy")
    facts: Facts = []
    rows: dict[str, Any] = {}
    match kind:
        case "run":
            title = f"Run of {result.policy}: {result.admitted} of {len(result.decisions)} jobs"
            unfinished = result.admitted_unfinished
            title += " admitted" + (f", {unfinished} of them did not finish" if unfinished else "")
            facts = tables.run_facts(result, data.get("utilisation", {}))
            decided = [tables.decision_row(decision) for decision in result.decisions]
            rows = {"Decisions in order of arrival": (tables.DECISIONS, decided)} if decided else {}
        case "solve":
            title = f"Offline optimum: {number(result.objective)}, {result.status}"
            facts = tables.solve_facts(result)
        case "ratio":
            policy = "OASiS" if result.run.policy == "oasis" else str(result.run.policy)
            jobs = len(result.run.decisions) if instance is None else len(instance.jobs)
            facts = tables.ratio_facts(policy, result, jobs)
            title = f"Competitive ratio of {policy}: {dict(facts)['competitive ratio']}"
            if instance is not None:
                rows_of_jobs = [_row_of_taken(row) for row in compare_jobs(instance, result)]
                rows = {"Who takes which job": (TAKEN, rows_of_jobs)}
        case "compare" if data.get("format") == FORMAT:
            title = policies + _on_jobs(data, "elastic job")
            facts = [("utility at most", number(data.get("bound")))]
            rows = {"Policies; times in seconds": tables.comparison_table(result)}
        case "compare":
            title = policies + _on_jobs(data)
            facts = tables.optimum_facts(result)
            rows = {"Policies": tables.comparison_table(result)}
        case "replay":
            title = f"{policies} replayed{_on_jobs(data)} of a trace"
            rows = {"Policies; times in seconds": tables.comparison_table(result)}
        case "quote":
            verdict = "would be admitted" if result.admitted else "would be rejected"
            title, facts = f"Quote: job {result.job_id} {verdict}", quote_facts(result)
        case _:
            title = how_many(len(data[SCHEDULES]), "schedule")
    return title, facts, [ReportTable(caption, *shown) for caption, shown in rows.items()]


def _on_jobs(data: Mapping[str, Any], noun: str = "job") -> str:
    """Return how many jobs there were, if the document says so."""
    return f" on {how_many(data['jobs'], noun)}" if data.get("jobs") is not None else ""


def _row_of_taken(row: JobComparison) -> tuple[str, ...]:
    cells: list[str] = []
    for side in (row.online, row.offline):
        cells += ["-", "-"] if side is None else [str(side.completion), number(side.utility)]
    return (row.job_id, row.taken_by, str(row.arrival), *cells)


def _was_run(data: Mapping[str, Any]) -> Facts:
    """Return lines on what was run: policies, options, instance or trace, seed, version."""
    said = {name: value_text(data[name]) for name in SAID if data.get(name) is not None}
    facts: Facts = [(name, said.pop(name)) for name in ("policy", "method") if name in said]
    for name, title in (("parameters", "option"), ("offline_parameters", "offline")):
        for key, value in (data.get(name) or {}).items():
            facts.append((f"{title} {key}", value_text(value)))
    facts += _of_policies(data.get("policies") or {})
    titles = ("instance", "SHA-256 of the instance")
    named = zip(titles, named_instance(data), strict=True)
    facts += [(name, str(value)) for name, value in named if value is not None]
    return [*facts, *_of_trace(data), *said.items()]


SAID = (
    *("policy", "method", "format", "servers", "gpus", "machines", "placement", "jobs"),
    *("seed", "version"),
)


def value_text(value: Any) -> str:
    """Format a value of a document briefly; a mapping by its number of settings."""
    if isinstance(value, Mapping):
        return f"{_count(value)} settings, which the result has"
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return number(value) if isinstance(value, float) else str(value)


def _count(value: Any) -> int:
    """Count the single values in nested mappings."""
    return sum(map(_count, value.values())) if isinstance(value, Mapping) else 1


Row = Mapping[str, Any]


def grid_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Rebuild the configuration of a sweep from the rows of its table."""
    seeds = list(dict.fromkeys(int(row["seed"]) for row in rows))
    in_turn = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return {
        "seeds": {"first": seeds[0], "count": len(seeds)} if in_turn else seeds,
        "task": _task(rows),
        "instances": _points(rows, "instance."),
        "policies": _points(rows, "policy."),
    }


def _task(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the task of all rows; a None that stands for no limit becomes infinity."""
    row, task = rows[0], _points(rows, "task.")[0]
    # None is both no limit and a limit of work, which stands in its own column.
    if "task.time_limit" in row and task.keys().isdisjoint({"time_limit", "work_limit"}):
        task["time_limit"] = math.inf
    if "task.gap" in row and "gap" not in task:
        task["gap"] = math.inf
    return task


def _points(rows: Sequence[Row], prefix: str) -> list[dict[str, Any]]:
    """Return the distinct settings in columns that begin with `prefix`, in order of appearance."""
    points: dict[str, dict[str, Any]] = {}
    for row in rows:
        point = {
            name.removeprefix(prefix): value
            for name, value in row.items()
            if name.startswith(prefix) and value is not None
        }
        points.setdefault(json.dumps(point, sort_keys=True), point)
    return list(points.values())


def toml_of(grid: Mapping[str, Any]) -> str:
    """Write a sweep's configuration as TOML, which `read_config` reads."""
    lines = [f"{name} = {_toml_value(grid[name])}" for name in ("seeds", "task") if name in grid]
    for name in ("instances", "policies"):
        for point in grid.get(name, ()):
            lines += ["", f"[[{name}]]"]
            lines += [f"{key} = {_toml_value(value)}" for key, value in point.items()]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_toml_value(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf and nan are written so in TOML too
    return json.dumps(value, ensure_ascii=False)


CELLS_CHECKED = "the schedules of each run satisfied (2)-(13) before its cell was recorded"


def sweep_section(name: str, cells: pa.Table) -> Section:
    """Make the section of a sweep in file `name`: grid, means, pictures, provenance."""
    from experiments.sweep import FAILED, varying  # noqa: PLC0415
    from experiments.sweep.summary import TITLE, columns_of, notes_of, rows_of  # noqa: PLC0415

    rows, frame = cells.to_pylist(), cells.to_pandas()
    figures, means = means_of(frame)
    grid, errors = grid_of(rows), frame.error[frame.status == FAILED].map(str)
    tables = [ReportTable(TITLE, columns_of(figures), rows_of(means, figures))]
    if len(errors):
        failed = [(str(count), error) for error, count in Counter(errors).items()]
        tables.append(ReportTable("Failed cells", (("cells", True), ("error", False)), failed))
    counts = {
        **{"cell": len(rows), "policy": len(grid["policies"]), "instance": len(grid["instances"])},
        "seed": frame.seed.nunique(),
    }
    facts = [("cells", str(len(rows))), ("failed", str(len(errors)))]
    if proven := [row["proven"] for row in rows if row.get("proven") is not None]:
        facts.append(("proven", f"{sum(proven)} of {len(proven)} optima"))
    return Section(
        name=name,
        title=f"Sweep: {', '.join(how_many(count, unit) for unit, count in counts.items())}",
        was_run=_cells_run(rows, varying(frame)),
        facts=facts,
        tables=tuple(tables),
        proofs=[("verified", CELLS_CHECKED)],
        again=_sweep_again(name, grid),
        picture=picture(sweep_page(frame)) if figures else "",
        answer=tuple(said(pairs_of_sweep(frame))),
        notes=tuple(notes_of(means, figures)),
    )


def _cells_run(rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> Facts:
    """Return lines on a sweep: values of its axes, shared parameters, versions."""
    facts: Facts = []
    for axis in [*axes, "seed"]:
        values = list(dict.fromkeys(value_text(row[axis]) for row in rows if row[axis] is not None))
        facts.append((axis.replace(".", " "), ", ".join(values)))
    for name, value in rows[0].items():
        is_parameter = name.startswith(("instance.", "task."))
        if is_parameter and name not in axes and value is not None:
            facts.append((name.replace(".", " "), value_text(value)))
    versions = dict.fromkeys(str(row["version"]) for row in rows)
    return [*facts, ("version", ", ".join(versions))]


def _sweep_again(name: str, grid: Mapping[str, Any]) -> tuple[str, ...]:
    """Return shell lines that write the configuration of a sweep and run it."""
    config, table_file = (shlex.quote(f"{Path(name).stem}{end}") for end in (".toml", ".parquet"))
    return (
        # In quotes, so that the shell leaves a $ in the grid alone.
        f"cat > {config} <<'END OF THE GRID'",
        *toml_of(grid).splitlines(),
        "END OF THE GRID",
        f"oasis sweep {config} -o {table_file}",
    )
