"""Run the cells of a page in a scratch directory that looks like the project's root.

``import scratch`` in a page's first cell: commands can then be pasted from the page as they are,
and what they write never lands in the checkout.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from IPython.core.magic import register_cell_magic

directory = Path(tempfile.mkdtemp(prefix="oasis-docs-"))
atexit.register(shutil.rmtree, directory, ignore_errors=True)
for name in ("examples", "figures"):
    shutil.copytree(Path(__file__).parent / name, directory / "docs" / name)
os.chdir(directory)

for name in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):  # Jupyter asks for colours
    os.environ.pop(name, None)
os.environ |= {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}


@register_cell_magic
def bash(_line: str, cell: str) -> None:
    """Run a cell with bash and print all it prints, in order; a failure breaks the page."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print("\n".join(line.rstrip() for line in done.stdout.splitlines()))  # noqa: T201
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}")
