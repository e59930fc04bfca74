"""Reports: every kind of result on one page that needs nothing else and says nothing twice."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.builders import elastic_data
from tests.builders import exit_code as oasis_command

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("jinja2", reason="needs the report extra")

from matplotlib import rc_context

import oasis
from experiments import competitive_ratio
from experiments.cli.options import method_params, note_unused
from experiments.plotting.canvas import as_written, new_figure, shorten
from experiments.report.sections import (
    MOST_ROWS,
    ReportTable,
    Section,
    commands_of,
    report_page,
    section_of,
)

NASTY = '<script>alert("1 & 2")</script>-->'


def small(name: str = "a") -> oasis.Instance:
    drawn = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=2, horizon=8, seed=1)
    jobs = tuple(replace(job, id=f"{name}{k}") for k, job in enumerate(drawn.jobs))
    return replace(drawn, jobs=jobs)


@pytest.fixture(scope="module")
def instance() -> oasis.Instance:
    return small(NASTY)


@pytest.fixture(scope="module")
def documents(instance: oasis.Instance, tmp_path_factory: Any) -> dict[str, Any]:
    """One document of each kind, as the commands write them."""
    folder = tmp_path_factory.mktemp("results")
    file = folder / "instance.json"
    oasis.write(instance, file)
    trace = folder / "jobs.csv"
    trace.write_text("id,submitted,duration,gpus\na,0,60,1\nb,5,30,2\n")
    job = folder / "job.json"
    job.write_text(json.dumps(json.loads(file.read_text())["jobs"][0] | {"id": "late"}))
    inputs = {
        "run": (file,),
        "solve": (file, "--gap", "5%", "--solver-seed", "7", "--set", "milp.presolve=false"),
        "ratio": (file, "--method", "milp"),
        "compare": (file, "--policies", "oasis,fifo,drf", "--seeds", "3"),
        "replay": (
            trace,
            "--servers",
            "2",
            "--max-jobs",
            "9",
            "--policies",
            "fifo,srtf",
            "--line",
            "fit",
        ),
        "quote": (file, job),
    }
    made = {}
    for command, words in inputs.items():
        path = folder / f"{command}.json"
        assert oasis_command(command, *words, "-o", path) in (0, 3)
        made[command] = json.loads(path.read_text())
    return made | {"schedules": {"schedules": made["solve"]["schedules"]}}


class Strict(HTMLParser):
    """Refuses a page whose tags do not match, and collects what it would load."""

    void = ("meta", "link", "img", "br", "hr", "input")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        self._look(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, attrs)

    def _look(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "object", "embed", "link", "base")
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("src", "href", "data", "poster", "action", "srcset", "xlink:href"):
                target = value or ""
                (self.references if target.startswith("#") else self.loads).append(target)
            if name == "id":
                self.ids.append(value or "")
            self.references += re.findall(r"url\((#[^)]*)\)", value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(documents: dict[str, Any], instance: oasis.Instance | None) -> str:
    sections = [
        section_of(f"{name}.json", data, instance)
        for name, data in documents.items()
        if instance is not None or name != "schedules"
    ]
    return report_page(sections)


@pytest.fixture(scope="module")
def page(documents: dict[str, Any], instance: oasis.Instance) -> str:
    return page_of(documents, instance)


@pytest.mark.parametrize("is_there", [True, False], ids=["with", "without"])
def test_a_page_of_every_kind_is_well_formed_and_loads_nothing(
    documents: dict[str, Any], page: str, is_there: bool
) -> None:
    if not is_there:
        for data in (found := json.loads(json.dumps(documents))).values():
            data.get("instance", {})["file"] = "nowhere.json"
        page = page_of(found, None)
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    pictures = [target.removeprefix("data:image/svg+xml;base64,") for target in parser.loads]
    for picture in pictures:
        assert ET.fromstring(b64decode(picture, validate=True)).tag.endswith("svg")
    assert "http" not in page
    assert "@import" not in page
    assert len(set(parser.ids)) == len(parser.ids)
    assert {reference[1:] for reference in parser.references} <= set(parser.ids)
    root = ET.fromstring(page)  # and it is XML without an undefined entity or an open tag
    assert len(list(root.iter("section"))) == len(documents) - (not is_there)
    assert len(pictures) == len(list(root.iter("img"))) == (7 if is_there else 4)
    assert all(picture.get("alt") for picture in root.iter("img"))
    notes = [note.text or "" for note in root.iter("p") if note.get("class") == "note"]
    left = [note for note in notes if note.startswith("*: of the finished jobs only.")]
    assert len(left) == 1
    notes.remove(left[0])
    assert len(notes) == (0 if is_there else 3)
    assert all("nowhere.json, is not there" in note for note in notes)


def test_text_of_results_is_escaped(page: str) -> None:
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#34;1 &amp; 2&#34;)&lt;/script&gt;--&gt;0" in page
    section = Section(NASTY, NASTY, [(NASTY, NASTY)], [], (), [], (NASTY,), "", (NASTY,))
    assert "<script" not in report_page([section], NASTY)


def test_the_same_results_give_the_same_bytes(
    documents: dict[str, Any], instance: oasis.Instance
) -> None:
    part = {kind: documents[kind] for kind in ("run", "compare")}
    assert page_of(part, instance) == page_of(part, instance)


def test_numbers_of_the_page_are_those_of_the_result(
    documents: dict[str, Any], instance: oasis.Instance
) -> None:
    data = documents["ratio"]
    section = section_of("r.json", data, instance)
    said, proofs = dict(section.facts), dict(section.proofs)
    assert said["competitive ratio"] == f"{data['ratio']:.6g} (proven)"
    assert proofs["2 alpha"].startswith(f"{data['bound_2alpha']:.6g},")
    assert proofs["a schedule earns"].startswith(f"{data['objective']:.6g},")
    assert dict(section.was_run)["SHA-256 of the instance"] == data["instance"]["sha256"]
    (rows,) = (made.rows for made in section.tables)
    assert len(rows) == len(instance.jobs)


@pytest.mark.parametrize("kind", ["run", "solve", "ratio", "compare", "replay", "quote"])
def test_the_commands_on_the_page_make_the_result_again(
    documents: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    from tests.recorded.outputs import repeatable

    source = tmp_path / "source.json"
    source.write_text(json.dumps(documents[kind]))
    for k, line in enumerate(commands_of(str(source), documents[kind])):
        again = tmp_path / f"again{k}.json"
        program, *words = shlex.split(line)
        assert program == "oasis"
        assert oasis_command(*words, "-o", again) == 0
        found = json.loads(again.read_text())
        # at what moment of a solve something was found
        others = {"history": None, "command": None}
        assert repeatable(found | others) == repeatable(documents[kind] | others)


@pytest.mark.parametrize(
    ("method", "text", "message"),
    [
        (
            "benders",
            "benders.windw=3",
            "--set benders.windw: no such parameter; expected one of search_limit, ",
        ),
        ("auto", "milp.presolve=3", "--set milp.presolve: expected true or false, got 3"),
        ("milp", "milp.presolve=no", "--set milp.presolve: expected true or false, got 'no'"),
        ("colgen", "benders.pays=1", "--set colgen.benders: no such parameter; expected"),
        ("colgen", "colgen=1", "--set colgen: no such parameter; expected"),
    ],
)
def test_a_parameter_that_a_method_has_not_is_refused(method: str, text: str, message: str) -> None:
    with pytest.raises(oasis.OasisError, match=f"^{message}"):
        method_params(method, [text])


def test_parameters_of_a_method_that_auto_did_not_take_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_unused({"milp": {"presolve": False}, "benders": {"pays": 0.1}}, "benders")
    note_unused({"pays": 0.1}, "benders")
    note_unused(None, "benders")
    assert capsys.readouterr().err == "--set milp: no effect, as benders solved this instance\n"


def test_a_comparison_on_elastic_jobs_has_a_page_and_can_be_made_again(tmp_path: Path) -> None:
    jobs = elastic_data(3)
    for job in jobs["jobs"]:
        job["utility"] = {"kind": "constant", "value": 1.0}
    file, result = tmp_path / "jobs.json", tmp_path / "result.json"
    file.write_text(json.dumps(jobs))
    words = (file, "--policies", "fifo,oasis,recourse", "--slot-seconds", "300.5")
    words = (*words, "--set", "oasis.scale=2", "--set", "recourse.discount=0.5")
    assert oasis_command("compare", *words, "-o", result) == 0
    data = json.loads(result.read_text())
    section = section_of("c.json", data, None)
    assert section.title == "3 policies on 3 elastic jobs"
    assert dict(section.facts)["utility at most"] == "3"
    assert [row[1] for row in section.tables[0].rows] == ["3", "3", "3"]
    ET.fromstring(report_page([section]))
    (line,) = section.again
    again = tmp_path / "again.json"
    assert oasis_command(*shlex.split(line)[1:], "-o", again) == 0
    assert json.loads(again.read_text())["trace"] == data["trace"]


def test_long_tables_say_how_many_rows_are_left_out() -> None:
    rows = [(f"j{k}",) for k in range(MOST_ROWS + 7)]
    made = ReportTable("jobs", (("job", False),), rows)
    page = report_page([Section("x", "y", [], [], (made,), [], (), "")])
    assert page.count("<td") == MOST_ROWS
    assert "7 more rows are in the result itself" in page


def odd(instance: oasis.Instance, ids: list[str]) -> oasis.Instance:
    """`instance` with other names of its first jobs."""
    jobs = [replace(job, id=name) for job, name in zip(instance.jobs, ids, strict=False)]
    return replace(instance, jobs=(*jobs, *instance.jobs[len(jobs) :]))


def test_names_with_dollars_are_no_formulas(instance: oasis.Instance) -> None:
    made = odd(instance, ["$\\bad{$", "a $5$", "$", r"\$x$"])
    run = oasis.simulate(made, oasis.OASiS.from_instance(made))
    quote = oasis.OASiS.from_instance(made).quote(made.jobs[0]).to_dict()
    quote |= {"kind": "quote", "policy": "oasis", "parameters": {}}
    ratio = competitive_ratio(made, method="milp").to_dict()
    sections = [
        section_of("$\\run{$.json", run.to_dict(), made),
        section_of("q.json", quote, None),
        section_of("$\\ratio{$.json", ratio, made),
    ]
    ET.fromstring(report_page(sections))
    drawn = new_figure(2.0, 1.0).text(0.5, 0.5, shorten("a $5$ \\$ job"))
    assert drawn._preprocess_math(drawn.get_text()) == ("a $5$ \\$ job", False)
    with rc_context({"text.parse_math": False}):
        assert as_written("a $5$ job") == "a $5$ job"


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_characters_that_xml_cannot_have_are_shown_as_replaced(instance: oasis.Instance) -> None:
    made = odd(instance, ["x\x01y", "a\ufffeb", "tab\there"])
    run = oasis.simulate(made, oasis.OASiS.from_instance(made))
    section = section_of("r.json", run.to_dict(), made)
    page = report_page([section], "title\x0b")
    ET.fromstring(page)
    ET.fromstring(b64decode(section.picture.partition(",")[2]))
    assert "x\N{REPLACEMENT CHARACTER}y" in page
    assert "title\N{REPLACEMENT CHARACTER}" in page
    assert "tab\there" in page
