"""The command ``oasis``, also as ``python -m oasis``.

The command line is part of `experiments`, which stands above this package: this file is the one
exception to the direction of imports.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line of this very installation.

    A folder called ``experiments``, ``offline`` or ``baselines`` in the working directory, which
    Python would look into first, is not taken for ours.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.cli.main import main as run  # noqa: PLC0415 (after the path is set)

    run()


if __name__ == "__main__":
    main()
