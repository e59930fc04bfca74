"""Files that appear whole or not at all: text, and archives of named arrays."""

from __future__ import annotations

import errno
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.errors import OasisError

Array = npt.NDArray[np.generic]


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file at `path` in one step: a temporary file beside it, then a rename."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(target.parent))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file at `path` by UTF-8 `text` in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_archive(
    path: str | os.PathLike[str], kind: str, state: Any, arrays: Mapping[str, Array]
) -> None:
    """Write JSON-able `state` and `arrays` as a NumPy archive of the given `kind`."""
    buffer = io.BytesIO()
    header = json.dumps({"kind": kind, "state": state})
    np.savez(buffer, allow_pickle=False, header=np.array(header), **dict(arrays))
    write_bytes(path, buffer.getvalue())


def read_archive(path: str | os.PathLike[str], kind: str) -> tuple[Any, dict[str, Array]]:
    """Read what `write_archive` wrote; `OasisError` if `path` is no archive of that `kind`."""
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(content, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        found, state = header["kind"], header["state"]
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        message = f"{os.fspath(path)}: expected {kind!r}, got a file that cannot be read"
        raise OasisError(message) from None
    if found != kind:
        raise OasisError(f"{os.fspath(path)}: expected {kind!r}, got {found!r}")
    return state, arrays


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
