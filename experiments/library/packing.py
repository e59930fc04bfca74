"""Schedules as few bytes, and back."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping

from oasis.model.errors import OasisError
from oasis.model.schedule import Schedule, schedules_by_job

PRESET = 9 | lzma.PRESET_EXTREME
SHOWN = 16  # hexadecimal digits of a digest: 64 bits


def packed(schedules: Mapping[str, Schedule]) -> bytes:
    """Compress schedules: a list of them in JSON, in the order of their job ids, then xz.

    The same schedules give the same bytes.

    Examples
    --------
    >>> import oasis
    >>> from experiments.library.packing import packed, unpacked
    >>> schedule = oasis.Schedule("j0", workers=[[0, 2, 3]], ps=[[0, 0, 1]])
    >>> unpacked(packed({"j0": schedule})) == {"j0": schedule}
    True
    """
    plain = [schedules[job].to_dict() for job in sorted(schedules)]
    text = json.dumps(plain, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=PRESET)


def unpacked(content: bytes) -> dict[str, Schedule]:
    """Read what `packed` made.

    Raises
    ------
    OasisError
        If it is something else.
    """
    try:
        plain = json.loads(lzma.decompress(content))
    except (lzma.LZMAError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise OasisError(f"expected schedules, packed with xz: {error}") from None
    return schedules_by_job(plain)


def digest(content: bytes) -> str:
    """The first 16 digits of the SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()[:SHOWN]
