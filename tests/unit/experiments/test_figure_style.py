"""The style of a figure: it changes the picture, and nothing else."""

from __future__ import annotations

import pytest

from tests.builders import exit_code as call

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")


@pytest.mark.parametrize("name", ["fig8", "priority-queue"])
def test_a_style_changes_the_picture_and_nothing_else(name, tmp_path, capfd):
    small = ("--seeds", 1, "--job-counts", 3, "--policies", "oasis,drf") if name == "fig8" else ()
    made = {}
    for style in ((), ("--style", "dark_background")):
        folder = tmp_path / str(len(style))
        assert call("figure", name, *small, "-o", folder, *style) == 0
        made[style] = (folder / f"{name}.svg").read_text(), (folder / f"{name}.csv").read_bytes()
    (light, data), (dark, again) = made.values()
    assert data == again
    white = "stroke: #ffffff"  # of what the default draws in black
    assert dark.count(white) > light.count(white)
    capfd.readouterr()
    assert call("figure", name, "-o", tmp_path / "no", "--style", "nowhere.mplstyle") == 2
    assert "nowhere.mplstyle" in capfd.readouterr().err
    assert not (tmp_path / "no").exists()
