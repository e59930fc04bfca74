"""Saved states: as plain values to compare, and damaged, with and without a checksum that fits."""

from __future__ import annotations

import base64
import io
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oasis import LiveScheduler, OasisError
from oasis.driver.live import SNAPSHOT
from oasis.driver.policy_state import _StateReader
from oasis.model.files import save_state, saved_state

VALUES: tuple[Any, ...] = (None, True, -5, 10**18, 0.5, -5.0, float("nan"), float("inf"))
OTHERS: tuple[Any, ...] = ("", "x", [], {}, [[]])


class _Plain(_StateReader):
    """Reads the state of a policy as lists: which equal texts are one object does not matter."""

    def __init__(self, text: str) -> None:
        content = zlib.decompress(base64.b64decode(text))
        pickle.Unpickler.__init__(self, io.BytesIO(content))

    def persistent_load(self, name: Any) -> Any:
        return ["named", name]

    def made(self, *parts: Any) -> Any:
        return list(parts) if len(parts) == 2 else parts  # a tuple may be a key

    def filled(self, made: Any, state: Any) -> None:
        made.append(state)

    def array(self, kind: str, shape: Any, data: Any) -> Any:
        return [kind, shape, bytes(data)]

    def generator(self, *parts: Any) -> Any:
        return parts


def plain_state(text: str) -> str:
    """The state of a policy, to compare it bit for bit."""
    return repr(_Plain(text).load())


def frozen(scheduler: LiveScheduler, directory: Path) -> str:
    """The whole state, to compare it bit for bit."""
    path = directory / "frozen"
    scheduler.save(path)
    state = saved_state(path, SNAPSHOT)
    return repr((plain_state(state["state"].pop("policy")), state))


def changed_and_loaded(
    path: Path, kind: str, load: Callable[[Path], Any], changes: int, check: Any = None
) -> int:
    """Load a state after each of many changes, and count how many are refused, in one line each.

    `check` is called with what was loaded though it was changed.
    """
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    refused: list[str] = []
    for _ in range(changes):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(OasisError, match=rf"^[^\n]*{path.name}: expected '{kind}'[^\n]*$"):
            load(path)
        path.write_bytes(whole)
        state = saved_state(path, kind)
        change(state, rng)
        save_state(path, kind, state)
        try:
            loaded = load(path)
        except OasisError as error:
            refused.append(str(error))
        else:
            if check is not None:
                check(loaded)
    for message in refused:
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
    return len(refused)


def change(data: Any, rng: np.random.Generator) -> None:
    """Change one entry anywhere in plain data: another value, none, or twice."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    key = keys[rng.integers(len(keys))]
    if data[key] and isinstance(data[key], (dict, list)) and rng.random() < 0.8:
        change(data[key], rng)
    elif (choice := rng.random()) < 0.2:
        del data[key]
    elif choice < 0.3 and isinstance(data, list):
        data.insert(key, data[key])
    elif choice < 0.6 and type(data[key]) in (int, float):
        data[key] = data[key] + rng.choice([-1, 1, -0.5, 100])
    else:
        given = VALUES + OTHERS
        data[key] = given[rng.integers(len(given))]
