"""The command under its two names, whatever lies in the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import oasis
from oasis.__main__ import main

ROOT = Path(oasis.__file__).parents[1]


def shell(*words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(ROOT), "TERM": "dumb", "NO_COLOR": "1"}
    environment = {**os.environ, **own, **more}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def disturbed(tmp_path: Path) -> Path:
    """A folder with an instance, a grid, and folders called as ours."""
    for name in ("experiments", "offline", "baselines"):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    path = tmp_path / "small.json"
    oasis.write(oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1), path)
    (tmp_path / "grid.toml").write_text(
        'seeds = [0, 1]\n[[instances]]\nfile = "small.json"\n[[policies]]\nname = ["fifo", "drf"]\n'
    )
    return tmp_path


def test_the_installed_script_is_not_disturbed_by_folders_called_as_ours(disturbed: Path) -> None:
    script = disturbed / "bin" / "oasis"
    script.parent.mkdir()
    script.write_text("import sys\nfrom oasis.__main__ import main\nsys.exit(main())\n")
    # an empty entry of PYTHONPATH is the working directory, and comes before the installation
    for words in (["run", "small.json"], ["sweep", "grid.toml", "--processes", "2"]):
        done = shell(str(script), *words, cwd=disturbed, PYTHONPATH=f"{os.pathsep}{ROOT}")
        assert (done.returncode, "not this one" in done.stderr) == (0, False), done.stderr


def test_folders_in_the_working_directory_are_not_taken_for_ours(
    disturbed: Path, tmp_path: Path
) -> None:
    path = disturbed / "small.json"
    for words in (["run"], ["ratio"], ["compare", "--policies", "fifo,drf"]):
        command, *options = words
        done = shell("-m", "oasis", command, str(path), *options, cwd=tmp_path)
        assert (done.returncode, "not this one" in done.stderr) == (0, False), done.stderr


def test_the_version_alone_loads_no_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "sys.argv = ['oasis', '--version']\n"
        "from oasis.__main__ import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    heavy = {'typer', 'rich', 'baselines', 'matplotlib', 'pandas', 'scipy', 'jinja2'}\n"
        "    print(*(heavy & set(sys.modules)))\n"
    )
    done = shell("-c", program, cwd=tmp_path)
    assert done.stdout == f"oasis-scheduler {oasis.__version__}\n\n"
    monkeypatch.setattr(sys, "argv", ["oasis", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"oasis-scheduler {oasis.__version__}\n"
