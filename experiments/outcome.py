"""How a command can end."""

DONE = 0
BAD_INPUT = 2
LIMIT = 3  # the result is printed, but a limit was hit before its proof


class ReaderGoneError(Exception):
    """Whoever reads standard output has closed it; no `OSError`, which typer would handle."""
