"""What is known of traces before one is read: formats.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

FACTS: Mapping[str, Any] = tomllib.loads(
    files("oasis.traces").joinpath("formats.toml").read_text("utf-8")
)
