"""Reports: every kind of result on one page that needs nothing else and says nothing twice."""

from __future__ import annotations

import json
import re
import tomllib
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib import rc_context
from pyarrow import parquet

import oasis
from baselines import DRF, FIFO
from experiments import competitive_ratio
from experiments.cli.options import note_unused
from experiments.evaluation import tables
from experiments.evaluation.comparison import Comparison, compare, replay_each
from experiments.figures import FIGURES
from experiments.plotting import comparison, files, plot_comparison, run_page
from experiments.plotting.canvas import as_written, new_figure, shorten
from experiments.plotting.comparison import sweep_page
from experiments.plotting.whatif import pictures
from experiments.report import sections as pages
from experiments.sweep import expand, run_sweep, summarise, sweep_config
from experiments.sweep.summary import columns_of, label, notes_of, rows_of
from oasis.model.errors import InputError
from oasis.scheduling import BasePolicy, Plan
from oasis.simulator import Workload, elastic_from_dict
from oasis.simulator.result import result_from_dict
from tests.builders import elastic_data, elastic_file
from tests.builders import exit_code as oasis_command
from tests.recorded.outputs import repeatable
from tests.unit.experiments.test_damaged_results import whatif
from tests.unit.experiments.test_figures import PUBLISHED_BY
from tests.unit.experiments.test_values import VALUES

NASTY = '<script>alert("1 & 2")</script>-->'


@pytest.fixture(scope="module")
def instance():
    drawn = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=2, horizon=8, seed=1)
    return odd(drawn, [f"{NASTY}{k}" for k in range(4)])


TRACE = "id,submitted,duration,gpus\na,0,60,1\nb,5,30,2\n"


@pytest.fixture(scope="module")
def documents(instance, tmp_path_factory):
    """One document of each kind, as the commands write them."""
    folder = tmp_path_factory.mktemp("results")
    file = folder / "instance.json"
    oasis.write(instance, file)
    (folder / "jobs.csv").write_text(TRACE)
    job = json.loads(file.read_text())["jobs"][0] | {"id": "late"}
    (folder / "job.json").write_text(json.dumps(job))
    made = {}
    for line in VALUES["reported"]["lines"]:
        command, *words = line.split()
        path = folder / f"{command}.json"
        words = [folder / word if "." in word and "=" not in word else word for word in words]
        assert oasis_command(command, *words, "-o", path) in (0, 3)
        made[command] = json.loads(path.read_text())
    return made | {"schedules": {"schedules": made["solve"]["schedules"]}}


def page_of(documents: dict[str, Any], instance: oasis.Instance | None) -> str:
    sections = [
        pages.section_of(f"{name}.json", data, instance)
        for name, data in documents.items()
        if instance is not None or name != "schedules"
    ]
    return pages.report_page(sections)


@pytest.fixture(scope="module")
def page(documents, instance):
    return page_of(documents, instance)


@pytest.mark.parametrize("is_there", [True, False], ids=["with", "without"])
def test_a_page_of_every_kind_is_well_formed_and_loads_nothing(documents, page, is_there):
    if not is_there:
        for data in (found := json.loads(json.dumps(documents))).values():
            data.get("instance", {})["file"] = "nowhere.json"
        page = page_of(found, None)
    root = ET.fromstring(page)  # XML without an undefined entity or an open tag
    loaded, ids, references = [], [], []
    for element in root.iter():
        assert element.tag not in ("script", "iframe", "object", "embed", "link", "base")
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name in ("src", "href", "data", "poster", "action", "srcset"):
                (references if value.startswith("#") else loaded).append(value)
            references += re.findall(r"url\((#[^)]*)\)", value)
        ids += [element.attrib["id"]] if "id" in element.attrib else []
    for picture in loaded:
        content = b64decode(picture.removeprefix("data:image/svg+xml;base64,"), validate=True)
        assert ET.fromstring(content).tag.endswith("svg")
    assert "http" not in page
    assert "@import" not in page
    assert len(set(ids)) == len(ids)
    assert {reference[1:] for reference in references} <= set(ids)
    assert len(list(root.iter("section"))) == len(documents) - (not is_there)
    assert len(loaded) == len(list(root.iter("img"))) == (7 if is_there else 4)
    assert all(picture.get("alt") for picture in root.iter("img"))
    notes = [note.text or "" for note in root.iter("p") if note.get("class") == "note"]
    marks = [note for note in notes if note.startswith("*: of the finished jobs only.")]
    assert len(marks) == 1
    assert len(notes) == (1 if is_there else 4)
    assert all("nowhere.json, is not there" in note for note in notes if note not in marks)


def test_text_of_results_is_escaped(page):
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#34;1 &amp; 2&#34;)&lt;/script&gt;--&gt;0" in page
    section = pages.Section(NASTY, NASTY, [(NASTY, NASTY)], [], (), [], (NASTY,), "", (NASTY,))
    assert "<script" not in pages.report_page([section], NASTY)


def test_the_same_results_give_the_same_bytes(documents, instance):
    part = {kind: documents[kind] for kind in ("run", "compare")}
    assert page_of(part, instance) == page_of(part, instance)


def test_numbers_of_the_page_are_those_of_the_result(documents, instance):
    data = documents["ratio"]
    section = pages.section_of("r.json", data, instance)
    said, proofs = dict(section.facts), dict(section.proofs)
    assert said["competitive ratio"] == f"{data['ratio']:.6g} (proven)"
    assert proofs["2 alpha"].startswith(f"{data['bound_2alpha']:.6g},")
    assert proofs["a schedule earns"].startswith(f"{data['objective']:.6g},")
    assert dict(section.was_run)["SHA-256 of the instance"] == data["instance"]["sha256"]
    (rows,) = (made.rows for made in section.tables)
    assert len(rows) == len(instance.jobs)


@pytest.mark.parametrize("kind", ["run", "solve", "ratio", "compare", "replay", "quote"])
def test_the_commands_on_the_page_make_the_result_again(documents, call, kind):
    Path("source.json").write_text(json.dumps(documents[kind]))
    for line in pages.commands_of("source.json", documents[kind]):
        assert call(f"{line.removeprefix('oasis ')} -o again.json")[0] == 0
        found = json.loads(Path("again.json").read_text())
        # at what moment of a solve something was found
        others = {"history": None, "command": None}
        assert repeatable(found | others) == repeatable(documents[kind] | others)


def test_parameters_of_a_method_that_auto_did_not_take_are_named(capsys):
    note_unused({"milp": {"presolve": False}, "benders": {"pays": 0.1}}, "benders")
    note_unused({"pays": 0.1}, "benders")
    note_unused(None, "benders")
    assert capsys.readouterr().err == "--set milp: no effect, as benders solved this instance\n"


def test_a_comparison_on_elastic_jobs_has_a_page_and_can_be_made_again(call):
    jobs = elastic_data(3)
    for job in jobs["jobs"]:
        job["utility"] = {"kind": "constant", "value": 1.0}
    Path("jobs.json").write_text(json.dumps(jobs))
    options = "--slot-seconds 300.5 --set oasis.scale=2 --set recourse.discount=0.5"
    assert call(f"compare jobs.json --policies fifo,oasis,recourse {options} -o r.json")[0] == 0
    data = json.loads(Path("r.json").read_text())
    section = pages.section_of("c.json", data, None)
    assert section.title == "3 policies on 3 elastic jobs"
    assert dict(section.facts)["utility at most"] == "3"
    assert [row[1] for row in section.tables[0].rows] == ["3", "3", "3"]
    ET.fromstring(pages.report_page([section]))
    (line,) = section.again
    assert call(f"{line.removeprefix('oasis ')} -o again.json")[0] == 0
    assert json.loads(Path("again.json").read_text())["trace"] == data["trace"]


def test_long_tables_say_how_many_rows_are_left_out():
    rows = [(f"j{k}",) for k in range(pages.MOST_ROWS + 7)]
    made = pages.ReportTable("jobs", (("job", False),), rows)
    page = pages.report_page([pages.Section("x", "y", [], [], (made,), [], (), "")])
    assert page.count("<td") == pages.MOST_ROWS
    assert "7 more rows are in the result itself" in page


def odd(instance: oasis.Instance, ids: list[str]) -> oasis.Instance:
    """`instance` with other names of its first jobs."""
    jobs = [replace(job, id=name) for job, name in zip(instance.jobs, ids, strict=False)]
    return replace(instance, jobs=(*jobs, *instance.jobs[len(jobs) :]))


def test_names_with_dollars_are_no_formulas(instance):
    made = odd(instance, ["$\\bad{$", "a $5$", "$", r"\$x$"])
    run = oasis.simulate(made, oasis.OASiS.from_instance(made))
    quote = oasis.OASiS.from_instance(made).quote(made.jobs[0]).to_dict()
    quote |= {"kind": "quote", "policy": "oasis", "parameters": {}}
    ratio = competitive_ratio(made, method="milp").to_dict()
    sections = [
        pages.section_of("$\\run{$.json", run.to_dict(), made),
        pages.section_of("q.json", quote, None),
        pages.section_of("$\\ratio{$.json", ratio, made),
    ]
    ET.fromstring(pages.report_page(sections))
    drawn = new_figure(2.0, 1.0).text(0.5, 0.5, shorten("a $5$ \\$ job", most=12))
    assert drawn._preprocess_math(drawn.get_text()) == ("a $5$ \\$ job", False)
    with rc_context({"text.parse_math": False}):
        assert as_written("a $5$ job") == "a $5$ job"


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_characters_that_xml_cannot_have_are_shown_as_replaced(instance):
    made = odd(instance, ["x\x01y", "a\ufffeb", "tab\there"])
    run = oasis.simulate(made, oasis.OASiS.from_instance(made))
    section = pages.section_of("r.json", run.to_dict(), made)
    page = pages.report_page([section], "title\x0b")
    ET.fromstring(page)
    ET.fromstring(b64decode(section.picture.partition(",")[2]))
    assert "x\N{REPLACEMENT CHARACTER}y" in page
    assert "title\N{REPLACEMENT CHARACTER}" in page
    assert "tab\there" in page


GRIDS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("grids.toml").read_text())


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The Parquet files of the grids."""
    folder = tmp_path_factory.mktemp("sweeps")
    paths = {name: folder / f"{name}.parquet" for name in GRIDS}
    for name, path in paths.items():
        run_sweep(sweep_config(GRIDS[name]), path)
    return paths


def test_a_sweep_has_its_grid_means_with_intervals_and_pictures_on_the_page(swept, call):
    done = call("report", swept["run"], swept["ratio"], "-o", "page.html")
    assert done == (0, "", "wrote page.html: 2 results\n")
    text = Path("page.html").read_text(encoding="utf-8")
    assert "Sweep: 24 cells, 4 policies, 2 instances, 3 seeds" in text
    assert "Sweep: 4 cells, 1 policy, 2 instances, 2 seeds" in text
    assert text.count('<img src="data:image/svg+xml;base64,') == 2
    assert "http" not in text
    assert "oasis scale=0.5 and oasis scale=1 earn the same on 3 shared seeds, jobs=3" in text
    assert "<th>proven" not in text
    assert call("plot", swept["run"], "-o", "sweep.svg") == (0, "", "wrote sweep.svg\n")
    assert Path("sweep.svg").read_bytes().startswith(b"<?xml")
    result = run_sweep(sweep_config(GRIDS["run"]), swept["run"])
    shown = [
        tuple(unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row))
        for row in re.findall(r"<tr>(.*?)</tr>", text)
    ]
    means = summarise(result.frame, result.task.headline)
    assert [note for note in notes_of(means, result.task.headline) if note not in text] == []
    assert set(rows_of(means, result.task.headline)) <= set(shown)
    points = sweep_page(result.frame).axes[0].get_yticklabels()
    assert len({point.get_text() for point in points}) == len(means)


@pytest.mark.parametrize("name", GRIDS)
def test_the_grid_of_a_table_makes_the_same_cells(name, swept):
    text = pages.toml_of(pages.grid_of(comparison.read_sweep(swept[name]).to_pylist()))
    again = expand(sweep_config(tomllib.loads(text)))
    assert [cell.key for cell in again] == [cell.key for cell in expand(sweep_config(GRIDS[name]))]


@pytest.mark.parametrize("name", FIGURES)
def test_the_grids_of_the_figures_are_written_so_that_they_can_be_read(name):
    figure = FIGURES[name]
    cells = expand(sweep_config(figure.grid(figure.settings(seeds=2))))
    rows = [cell.columns for cell in cells]
    again = expand(sweep_config(tomllib.loads(pages.toml_of(pages.grid_of(rows)))))
    assert [cell.key for cell in again] == [cell.key for cell in cells]


@pytest.mark.skipif(not mpl.__version__.startswith(PUBLISHED_BY), reason="other letters")
def test_pictures_are_those_recorded(documents, instance, swept):
    drawn = {name: files.picture_of(data, name, instance) for name, data in documents.items()}
    for name, path in swept.items():
        drawn[f"sweep of {name}"] = sweep_page(comparison.read_sweep(path).to_pandas())
    for figure, words in pictures(result_from_dict(whatif())):
        drawn[re.split("[,:.]", words)[0]] = figure
    drawn["one measure"] = plot_comparison(result_from_dict(documents["compare"])).figure
    texts = {name: files.svg_text(figure) for name, figure in drawn.items()}
    found = {name: sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
    assert found == VALUES["pictures"]


def test_the_lines_on_the_page_run_as_they_are(swept, call):
    section = pages.sweep_section(str(swept["run"]), comparison.read_sweep(swept["run"]))
    first, *grid, end, command = section.again
    assert (first, end) == ("cat > run.toml <<'END OF THE GRID'", "END OF THE GRID")
    Path("run.toml").write_text("\n".join(grid) + "\n", encoding="utf-8")
    assert call(command.removeprefix("oasis "))[0] == 0
    made, before = (parquet.read_table(path) for path in ("run.parquet", swept["run"]))
    names = [name for name in before.column_names if not name.startswith("measured.")]
    assert made.select(names).equals(before.select(names))


def test_failed_cells_are_counted_with_their_errors(swept):
    rows = comparison.read_sweep(swept["run"]).to_pylist()
    for row in rows[:3]:
        row |= {"status": "failed", "error": "ValueError: <no>", "total_utility": None}
    section = pages.sweep_section("a.parquet", pa.Table.from_pylist(rows))
    assert dict(section.facts) == {"cells": "24", "failed": "3"}
    assert section.tables[-1].rows == [("3", "ValueError: <no>")]
    assert "ValueError: &lt;no&gt;" in pages.report_page([section])


def test_what_is_no_table_of_numbers_is_named(swept, tmp_path):
    table = comparison.read_sweep(swept["run"])
    for name in ("total_utility", "finished", "unfinished", "jobs"):
        rows = [row | {name: "abc"} for row in table.to_pylist()]
        with pytest.raises(InputError, match=rf"^{name}: expected numbers, got \['abc'"):
            pages.sweep_section("a.parquet", pa.Table.from_pylist(rows))
    file = tmp_path / "table"
    for rows, said in (
        ([row | {"seed": None} for row in table.to_pylist()], r"^seed: expected whole numbers, g"),
        ([], "it has no rows"),
    ):
        schema = None if rows else table.schema
        parquet.write_table(pa.Table.from_pylist(rows, schema=schema), file)
        assert comparison.is_table(file), "it is known by its beginning"
        with pytest.raises(oasis.OasisError, match=said):
            comparison.read_sweep(file)
    file.write_text("{}")
    assert not comparison.is_table(file)
    assert not comparison.is_table(tmp_path / "nowhere.json")


def test_pictures_of_means_show_intervals_and_say_what_they_leave_out():
    nothing = {"mean": None, "low": None, "high": None}
    some = {"mean": 4.0, "low": 2.0, "high": 8.0}
    ax = comparison.plot_means([("a $1$", nothing), ("b", some)], "ratio_upper")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [r"a \$1\$", "b"]
    lines = [line.get_xdata().tolist() for line in ax.lines]
    assert lines == [[2.0, 8.0], [4.0]]
    assert ax.get_xscale() == "linear"
    wide = comparison.plot_means(
        [("a", some), ("b", {**some, "mean": 400.0, "high": 900.0})], "ratio_upper"
    )
    assert wide.get_xscale() == "log"
    many = comparison.plot_means(
        [(str(k), some) for k in range(comparison.MOST_POINTS + 1)], "finished"
    )
    assert many.get_title() == "finished: mean and 95 % interval, first 40 of 41"
    assert len(comparison.means_page({"finished": [("a", some)], "total_utility": []}).axes) == 2


def test_labels_name_what_varies():
    row = {"instance.preset": "testbed", "instance.mix": [0.5, 0.5], "policy.x": None}
    assert label(row, "instance.") == "testbed mix=[0.5,0.5]"
    assert label(row, "policy.") == ""
    assert columns_of(["finished"])[-1] == ("finished", True)


POLICIES: dict[str, dict[str, Any]] = {"kubernetes-default": {}, "fifo": {}}


def stuck() -> Workload:
    """Two gangs of three workers on four GPUs, and a small job before them.

    The default scheduler binds pods one by one, and the two hold two GPUs each for ever.
    """

    def job(name: str, arrival: float, work: float, workers: int) -> dict[str, Any]:
        counts = {"min": workers, "max": workers, "initial": workers}
        own = {"id": name, "arrival": arrival, "work": work, "workers": counts}
        return own | {"worker": {"gpu": 1}, "utility": {"kind": "constant", "value": 1.0}}

    jobs = [job("c", 0, 30, 1), job("a", 10, 90, 3), job("b", 10, 60, 3)]
    return elastic_from_dict(elastic_file(jobs, {"id": "n0", "capacity": {"gpu": 4}}))


@pytest.fixture(scope="module")
def replayed():
    return replay_each(stuck(), POLICIES, {"version": "1"})


def test_a_replay_says_who_deadlocked_and_marks_the_mean(replayed):
    """c waits for nobody; a and b wait from 10 to the end at 30 + 30 + 20."""
    found = replayed.policies["kubernetes-default"]
    assert (found["finished"], found["unfinished"], found["rejected"]) == (1, 2, 0)
    assert found["mean_waiting"] == pytest.approx((70 + 70) / 3)
    assert found["mean_completion"] < replayed.policies["fifo"]["mean_completion"]
    assert replayed.policies["fifo"]["unfinished"] == 0
    stuck_row, fifo_row = tables.comparison_table(replayed)[1]
    assert stuck_row[1:7] == ("1", *[f"30{tables.SPACE}s*"] * 3, f"47{tables.SPACE}s*", "90.6%*")
    assert fifo_row[6] == "75%"  # the two that never run hold more
    assert not any("*" in cell for cell in fifo_row)
    first, second, third = tables.unfinished_notes(replayed)
    assert first == ("*: of the finished jobs only. Not finished, of 3 jobs: kubernetes-default 2")
    assert "end of the run" in second
    assert third == "Use*: what such a job holds counts as used"


class Closed(BasePolicy):
    """Rejects all."""

    def decide(self, view: Any) -> Plan:
        return Plan(rejected={job.index: "closed" for job in view.arrived})


def test_a_policy_that_rejects_all_has_no_waiting_that_can_be_compared():
    """It waits for nothing, which is no merit."""
    found = replay_each(stuck(), {f"{__name__}:Closed": {}})
    (row,) = found.policies.values()
    assert (row["mean_waiting"], row["rejected"]) == (0.0, 3)
    shown = tables.comparison_table(found)[1][0][1:7]
    assert shown == ("0", "-", "-", "-", f"0{tables.SPACE}s*", "0%*")


def test_rejected_jobs_and_one_run_that_lost_a_job_are_marked_too():
    """OASiS rejects; its mean is one of the jobs that it took and finished."""
    instance = oasis.generate("testbed", jobs=8, seed=1)
    makers = {"oasis": lambda: oasis.OASiS.from_instance(instance), "drf": DRF}
    found = compare(instance, makers)
    row = found.policies["oasis"]
    assert row["rejected"] > 0
    assert row["unfinished"] == len(instance.jobs) - row["finished"]
    assert tables.comparison_table(found)[1][0][5].endswith("*")
    found = compare(instance, {"fifo": lambda seed: FIFO(seed=seed)}, {"fifo": [0, 1]})
    row = found.policies["fifo"]
    assert row["unfinished"] == 8 - row["finished"] > 0
    assert len(row["over_seeds"]["figures"]["unfinished"]["values"]) == 2
    assert tables.comparison_table(found)[1][0][5].endswith("*")


def test_the_plot_marks_the_bar_and_says_how_many(replayed):
    ax = plot_comparison(replayed, measure="completion")
    labels = [text.get_text() for text in ax.texts]
    assert labels.count("30*") == 3
    assert sum(label.endswith("*") for label in labels) == 3  # those of FIFO are not marked
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0].startswith("kubernetes")
    assert names[0].endswith("\n* 2 of 3 unfinished")
    assert names[1] == "fifo"
    for measure in ("waiting", "use"):
        other = plot_comparison(replayed, measure=measure)
        assert sum(text.get_text().endswith("*") for text in other.texts) == 1
        assert "2 of 3 unfinished" in other.get_yticklabels()[0].get_text()


def test_a_run_and_a_ratio_say_how_many_admitted_jobs_did_not_finish():
    """They say of how many jobs the policy was paid, not only how many it took."""
    instance = oasis.generate("testbed", jobs=4, seed=1)
    said = ("did not finish", "3 of 4 admitted jobs, which earn nothing")
    result = competitive_ratio(instance, method="milp", policy=FIFO())
    run = result.run
    assert run.admitted_unfinished == run.simulation["unfinished"] == 3
    assert "did not finish" in repr(run)
    assert said in tables.run_facts(run, {})
    assert said in tables.run_facts(oasis.Run.from_dict(json.loads(json.dumps(run.to_dict()))), {})
    assert "3 of them did not finish" in run_page(instance, run).get_suptitle()
    section = pages.section_of("run.json", run.to_dict() | {"kind": "run"}, None)
    assert section.title == "Run of fifo: 4 of 4 jobs admitted, 3 of them did not finish"
    assert said in tables.ratio_facts("fifo", result, 4)
    assert said not in tables.ratio_facts("fifo", replace(result, is_complete=False), 4)
    assert said in pages.section_of("ratio.json", result.to_dict(), instance).facts
    best = competitive_ratio(instance, method="milp")
    assert best.run.admitted_unfinished == 0
    assert "did not finish" not in dict(tables.run_facts(best.run, {}))
    assert "did not finish" not in dict(tables.ratio_facts("OASiS", best, 4))
    assert "did not finish" not in repr(best.run)


def test_the_means_of_a_sweep_are_marked_also_where_unfinished_jobs_were_not_counted():
    rows = {"seed": [0, 1], "status": "done", "policy.name": "las", "finished": [2.0, 4.0]}
    rows |= {"jobs": 4, "mean_completion": [3.0, 5.0]}
    shown = ["finished", "mean_completion"]
    means = summarise(pd.DataFrame(rows), shown)
    assert means["unfinished"].tolist() == [1.0]
    assert [cell.endswith("†") for cell in rows_of(means, shown)[0][-2:]] == [False, True]
    assert notes_of(means, shown)[-1] == "†: of the finished jobs only. Not finished: las 1"
    means = summarise(pd.DataFrame(rows | {"finished": 4.0}), shown)
    assert not any("†" in text for text in (*rows_of(means, shown)[0], *notes_of(means, shown)))


def test_the_plot_of_means_says_how_many_did_not_finish():
    point = {"mean": 3.0, "low": 2.0, "high": 4.0, "unfinished": 2.5}
    ax = comparison.plot_means([("las", point)], "mean_completion")
    assert [text.get_text() for text in ax.texts] == ["2.5 unfinished"]
    assert not comparison.plot_means([("las", point)], "total_utility").texts


class Idle(BasePolicy):
    """Starts nothing."""

    def decide(self, view: Any) -> Plan:
        return Plan()


def test_a_run_in_which_no_job_ever_held_a_worker_says_so():
    instance = oasis.generate("testbed", jobs=4, seed=1)
    facts = dict(tables.run_facts(oasis.simulate(instance, Idle()), {}))
    assert facts["total utility"] == "0"
    said = "4 of 4 admitted jobs, which earn nothing: no job ever ran"
    assert facts["did not finish"] == said
    run = oasis.simulate(instance, FIFO())
    told = replace(run, report={"given_up_after_start": ["j5", "j9"], "plans": 3})
    facts = dict(tables.run_facts(told, {}))
    assert "no job ever ran" not in facts["did not finish"]
    assert (facts["given up after start"], facts["plans"]) == ("j5, j9", "3")


def test_counts_and_long_times_keep_their_digits():
    rows = {"mine": {"unfinished": 12345, "finished": 98765, "mean_waiting": 1.0}}
    (first, *_) = tables.unfinished_notes(Comparison("replay", rows, {"jobs": 111110}))
    assert first.endswith("mine 12345")
    # Earlier versions did not count who is unfinished.
    rows = {"las": {"finished": 3, "mean_completion": 7.0}, "fifo": {"finished": 5}}
    found = Comparison("replay", rows, {"jobs": 5})
    assert found.unfinished == {"las": 2, "fifo": 0}
    assert tables.unfinished_notes(found)[0].endswith("Not finished, of 5 jobs: las 2")
    texts = [tables.brief(98765), tables.brief(1234.5, 3), tables.brief(4.891, 3)]
    assert texts == ["98765", "1234", "4.89"]
    interval = tables.interval({"mean": 23456.0, "low": 1234.0, "high": 98765.0})
    assert interval == "23456 (1234 to 98765)"
