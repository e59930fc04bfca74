"""For each policy, a value of each option that is not its default."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PRICES = HERE / "prices.json"  # U and L in raw units, with a floor of 0.3
UNUSUAL: dict[str, dict[str, Any]] = {
    name: {key: str(PRICES) if value == PRICES.name else value for key, value in options.items()}
    for name, options in tomllib.loads((HERE / "unusual.toml").read_text(encoding="utf-8")).items()
}
