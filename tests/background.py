"""Run work in another thread while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(
    work: Callable[[threading.Event], None],
    end: Callable[[], None] = lambda: None,
    within: float | None = None,
) -> Iterator[None]:
    """Run `work` in a thread until the block ends; what it raised is raised there.

    Parameters
    ----------
    work : callable
        Given an event that is set when the block ends; it has to return then.
    end : callable
        Called too when the block ends, to stop `work` where that is done otherwise.
    within : float, optional
        So many seconds it may take to return; without it, any time.
    """
    over = threading.Event()
    failures: list[BaseException] = []

    def tried() -> None:
        try:
            work(over)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failures.append(error)

    thread = threading.Thread(target=tried)
    thread.start()
    try:
        yield
    finally:
        over.set()
        end()
        thread.join(within)
        if failures:
            raise failures[0]
