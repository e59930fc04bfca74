"""Section of a report about ``oasis whatif``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.evaluation import whatif_tables as texts
from experiments.evaluation.machines import machines_text
from experiments.evaluation.whatif_result import RECORDED, WhatIf
from experiments.plotting.whatif import pictures
from experiments.report.section import Picture, ReportTable, Section, picture


def whatif_section(
    name: str, data: Mapping[str, Any], result: WhatIf, changed: tuple[str, ...]
) -> Section:
    """The section of a result from the file `name`.

    `data` is its document; `changed` names files that are not any more what they were.
    """
    drawn = tuple(Picture(picture(figure), caption) for figure, caption in pictures(result))
    about = result.about
    missing = [f"Without {', '.join(result.missing)}: interrupted."] if result.missing else []
    missing += [f"Failed: {failure}" for failure in about.get("failed", ())]
    facts = [("jobs", f"{about['jobs']:,}"), ("machines", machines_text(result.first.machines))]
    names = ("kept", "format", "placement", "utilities", "version")
    facts += [(key, str(about[key])) for key in names if about.get(key) is not None]
    facts += [("as read", note) for note in about.get("notes", ())]
    facts += [(f"trace {key}", str(value)) for key, value in (about.get("trace") or {}).items()]
    for policy, row in result.first.policies.items():
        options = ", ".join(f"{key}={value}" for key, value in row["parameters"].items())
        facts += [(f"options of {policy}", options or "none")] if policy != RECORDED else []
    return Section(
        name=name,
        title=texts.jobs_text(result),
        was_run=facts,
        facts=[],
        tables=tuple(ReportTable(*one) for one in texts.tables(result)),
        proofs=[],
        again=(str(data["command"]),) if data.get("command") else (),
        picture="",
        notes=(*missing, *changed),
        answer=texts.answer(result),
        pictures=drawn,
        remarks=tuple(texts.notes(result)),
    )
