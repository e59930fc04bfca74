"""The dashboard for Grafana asks for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from oasis.kubernetes.control.metrics import Metrics

DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana-dashboard.json"
ENDINGS = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def exported() -> set[str]:
    """Names of the series, as Prometheus sees them."""
    families = Metrics().registry.collect()
    return {family.name + ending for family in families for ending in ENDINGS[family.type]}


def asked() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_series_that_is_asked_for_is_exported() -> None:
    names = {name for expr in asked() for name in re.findall(r"oasis_\w+", expr)}
    assert names
    assert names <= exported()


def test_every_measurement_of_the_controller_is_shown() -> None:
    text = " ".join(asked())
    # Sizes that only say something where something else is wrong.
    hidden = {"oasis_checkpoint_bytes", "oasis_slot"}
    shown = {family.name for family in Metrics().registry.collect() if family.name in text}
    assert {family.name for family in Metrics().registry.collect()} - shown == hidden


def test_panels_do_not_overlap() -> None:
    places = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + dx, place["y"] + dy)
            for dx in range(place["w"])
            for dy in range(place["h"])
        }
        assert not places & cells
        assert max(x for x, _ in cells) < 24
        places |= cells
