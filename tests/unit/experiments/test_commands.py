"""Every command is registered with the function of its own module, and its help has an example."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import oasis
from experiments.cli import app as command_line
from experiments.cli import commands
from experiments.cli.commands.kubernetes import cluster, running
from experiments.cli.main import main
from experiments.evaluation import live as cluster_policies
from experiments.figures import FIGURES, studies


def test_every_module_of_commands_is_a_command() -> None:
    found = {each.name for each in pkgutil.iter_modules(commands.__path__)}
    assert {one["file"] for one in command_line.COMMANDS.values()} - {""} == found


def test_a_command_loads_no_other() -> None:
    program = (
        "import sys\n"
        "from experiments.cli.app import run_app\n"
        "assert run_app(['schema', 'instance']) == 0\n"
        "own = 'experiments.cli.commands.'\n"
        "loaded = [name for name in sys.modules if name.startswith((own, 'kubernetes'))]\n"
        "print(*loaded, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr.decode().split() == ["experiments.cli.commands.about"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize("typed", ["FIFO", "Fifo"])
def test_a_policy_is_explained_under_its_own_name(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, "policies", typed)
    assert (code, err) == (0, "")
    assert out.startswith("fifo\n")
    assert "--set fifo.seed=" in out


def test_a_cluster_has_no_instance_to_take_bounds_from() -> None:
    with pytest.raises(oasis.OasisError, match="--bounds: expected a file with U and L"):
        cluster_policies.cluster_policy("oasis", {}, lookahead=10)
    made = cluster_policies.cluster_policy("recourse", {"rounds": 2}, lookahead=10)()
    assert made.name == "recourse"


def test_bounds_of_a_cluster_come_from_what_was_learned(tmp_path: Path) -> None:
    from offline import learn_prices

    past = oasis.generate("testbed", jobs=4, seed=1)
    learned, path = learn_prices([past]), tmp_path / "prices.json"
    learned.write(path)
    assert cluster_policies.read_bounds(path, 10)(past.cluster).alpha == learned.bounds.alpha


def test_the_policy_of_a_cluster_is_oasis_where_its_bounds_are_given(tmp_path: Path) -> None:
    path = tmp_path / "past.json"
    oasis.write(oasis.generate("testbed", jobs=4, seed=1), path)
    assert running.policy_maker(None, None, None, 10, None)().name == "recourse"
    assert running.policy_maker(None, None, path, 10, None)().name == "oasis"
    with pytest.raises(oasis.OasisError, match="--bounds: expected none with policy las"):
        running.policy_maker("las", None, path, 10, None)


def test_families_of_the_studies() -> None:
    settings = FIGURES["floor"].settings(scale=0.1)
    assert len(studies.floor_grid(settings)["instances"]) == 5
    assert studies.calibrated(settings, 100, 50, 300)["worker_servers"] == 5
    assert studies.family({"instance.preset": "testbed"}) == "testbed, 12 jobs"
    assert studies.variant({"policy.name": "rrh"}) == "rrh"
    for figure in studies.FIGURES:
        with pytest.raises(ValueError, match=r"^jobs: expected none"):
            figure.grid(figure.settings(jobs=(10,)))
        with pytest.raises(ValueError, match=r"^policies: expected none"):
            figure.grid(figure.settings(policies=("fifo",)))


def test_the_share_of_a_machine_that_hosts_both() -> None:
    assert cluster.NodeOptions().share is None
    assert cluster.NodeOptions("1/4").share == Fraction(1, 4)
    with pytest.raises(oasis.OasisError, match=r"^--ps-share: expected a number between 0 and 1"):
        assert cluster.NodeOptions("a half").share


def test_a_command_may_have_a_default_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """The figures of the paper show both forms of OASiS, and their help says so."""
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["figure", "--help"])
    assert "[default: 0 and 0.7, side by side]" in " ".join(
        capsys.readouterr().out.replace("│", " ").split()
    )


def test_one_job_is_no_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, _, errors = said(capsys, "generate", "--preset", "testbed", "--jobs", "1", "-o", "i.json")
    assert ": 1 job, 7 worker servers, 2 parameter-server hosts, 10 slots of 1200 s" in errors
    assert said(capsys, "run", "i.json")[1].startswith("oasis on 1 job\n")
    assert said(capsys, "compare", "i.json", "--policies", "fifo")[1].startswith("1 job\n")


def test_characters_that_the_font_lacks_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    instance = oasis.generate("testbed", jobs=2, worker_servers=2, ps_servers=2, seed=1)
    names = zip(instance.jobs, ("\u82b8\U0001f680", "a\tb"), strict=True)
    named = replace(instance, jobs=tuple(replace(job, id=name) for job, name in names))
    oasis.write(named, "i.json")
    lacking = "some characters are not in the font: "
    code, _, errors = said(capsys, "run", "i.json", "--plot", "r.png", "-o", "r.json")
    assert (code, errors.count(lacking), errors.count("Glyph")) == (0, 1, 0)
    assert set("\u82b8\U0001f680") < set(errors.partition(lacking)[2])
    code, _, errors = said(capsys, "report", "r.json", "-o", "r.html")
    assert (code, errors.count(lacking), errors.count("Glyph")) == (0, 1, 0)


ON_NO_SERVERS = (
    ("describe", "i.json", "--plot", "d.svg"),
    ("run", "i.json", "-o", "run.json", "--plot", "r.svg"),
    ("run", "i.json", "--policy", "recourse"),
    ("verify", "i.json", "run.json"),
    ("quote", "i.json", "job.json", "--plot", "q.svg"),
    ("quote", "i.json", "job.json", "--policy", "recourse"),
    ("solve", "i.json", "--time-limit", "5", "-o", "solve.json"),
    ("ratio", "i.json", "--time-limit", "5", "-o", "ratio.json", "--plot", "ratio.svg"),
    ("compare", "i.json", "--policies", "oasis,fifo,dorm", "-o", "compare.json"),
    ("learn", "i.json", "-o", "prices.json"),
    ("run", "i.json", "--bounds", "prices.json"),
    ("report", "run.json", "ratio.json", "compare.json", "solve.json", "-o", "report.html"),
    ("sweep", "grid.toml", "--processes", "1"),
)


def test_every_command_takes_an_instance_without_parameter_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("generate", "--preset", "testbed", "--ps-servers", "0", "--jobs", "5", "-o", "i.json")
    assert said(capsys, *made)[0] == 0
    data = json.loads(Path("i.json").read_text())
    data["jobs"] = [
        {name: value for name, value in job.items() if name != "ps"} for job in data["jobs"]
    ]
    Path("i.json").write_text(
        json.dumps({name: value for name, value in data.items() if name != "ps_servers"})
    )
    job = data["jobs"][0] | {"id": "another", "arrival": data["horizon"] - 1}
    Path("job.json").write_text(json.dumps(job))
    instances = '[[instances]]\npreset = "testbed"\njobs = 3\nps_servers = 0\n'
    Path("grid.toml").write_text(instances + '[[policies]]\nname = "oasis"\n')
    for words in ON_NO_SERVERS:
        code, _, errors = said(capsys, *words)
        assert code == 0, (words, errors)
    assert "ps servers used" not in said(capsys, "run", "i.json")[1]
