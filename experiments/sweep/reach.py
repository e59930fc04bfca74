"""Whether there is a Dask scheduler with workers at an address, found out before the work."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from oasis.model.errors import OasisError

POLL_SECONDS = 0.2


def check_cluster(address: str, seconds: float) -> None:
    """Check that a Dask scheduler answers at `address` and has a worker, within `seconds`.

    A client of Dask that finds no scheduler takes its time to close and prints a traceback, and one
    that finds no workers waits for ever. So both are looked for first.

    Parameters
    ----------
    address : str
        Such as ``tcp://10.0.0.1:8786``.
    seconds : float
        How long to try, in all.

    Raises
    ------
    OasisError
        In one line: if nothing or something else answers there, or no worker comes in time.
    """
    expected = f"scheduler: expected a Dask scheduler at {address}"
    begin = monotonic()
    answered: list[Any] = []
    try:
        _run(asyncio.wait_for(_wait_for_worker(address, answered), seconds))
    except TimeoutError:
        if answered:
            raise OasisError(f"{expected} with workers, it has none after {seconds:g} s") from None
        raise OasisError(f"{expected}, no answer in {seconds:g} s") from None
    except OSError as error:  # says what the operating system or Dask has against the address
        passed = monotonic() - begin
        why = f"no answer in {seconds:g} s" if passed >= seconds else str(error)
        raise OasisError(f"{expected}: {why}") from None
    except ValueError as error:
        raise OasisError(f"{expected}: {error}") from None
    except Exception as error:  # noqa: BLE001 - whatever a stranger's answer makes of Dask's reader
        kind = type(error).__name__.strip("_")
        raise OasisError(f"{expected}, something else answers there ({kind})") from None


def _run(look: Coroutine[Any, Any, None]) -> None:
    """Run `look` here, or in a thread where an event loop runs already, as in Jupyter."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(look)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, look).result()


async def _wait_for_worker(address: str, answered: list[Any]) -> None:
    from distributed.core import rpc  # noqa: PLC0415 (needs an extra)
    from distributed.security import Security  # noqa: PLC0415

    security = Security().get_connection_args("client")
    async with rpc(address, connection_args=security) as scheduler:
        while True:
            found = await scheduler.identity()
            if found["type"] != "Scheduler":
                raise ValueError(f"got a {found['type']}")
            answered.append(found["id"])
            if found["workers"]:
                return
            await asyncio.sleep(POLL_SECONDS)
