"""``python -m experiments.cli`` is the ``oasis`` command."""

from experiments.cli.main import main

main()
