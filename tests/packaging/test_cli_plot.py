"""``--plot``: the picture appears beside the usual output, and errors come before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import exit_code as call

pytest.importorskip("matplotlib", reason="needs the plot extra")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "congested.json"
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ("nix", "--style: expected paper, a file that ends in .mplstyle, or one of "),
        ("absent.mplstyle", "absent.mplstyle: No such file"),
        ("wrong.mplstyle", "lines.colour"),
        ("bad.mplstyle", "font.size"),
    ],
)
def test_a_style_that_is_none_is_said_before_the_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    style: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.mplstyle").write_text("lines.colour: red\n")
    Path("bad.mplstyle").write_text("font.size: huge\n")
    assert call("run", "absent.json", "--plot", "a.svg", "--style", style) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert not Path("a.svg").exists()


def test_a_style_changes_the_picture_and_nothing_without_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    style = tmp_path / "mine.mplstyle"
    style.write_text("font.size: 15\n")
    names = ("plain", "mine", "again")
    paths = [tmp_path / f"{name}.svg" for name in names]
    words = ("compare", EXAMPLE, "--policies", "fifo,drf", "--plot")
    assert call(*words, paths[0]) == 0
    assert call(*words, paths[1], "--style", style) == 0
    assert call(*words, paths[2]) == 0
    plain, mine, again = (path.read_bytes() for path in paths)
    assert plain == again
    assert plain != mine
    capfd.readouterr()
    assert call("compare", EXAMPLE, "--style", style) == 2
    assert capfd.readouterr() == ("", "oasis: --style: expected --plot beside it\n")
