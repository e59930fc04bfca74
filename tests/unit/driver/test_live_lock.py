"""A journal has one writer at a time, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from baselines import FIFO
from oasis import LiveScheduler, OasisError
from oasis.driver.journal import JournalLock
from tests.live import CLUSTER, LOOKAHEAD

ROOT = Path(__file__).parents[3]
REFUSED = r"^journal: .*journal is open in another process; close it first$"
HOLDER = """
import sys
from oasis import LiveScheduler
scheduler = LiveScheduler.reopen(sys.argv[1])
print(scheduler.calls, flush=True)
sys.stdin.readline()
scheduler.close()
print("closed", flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX has the locks")


def journalled(path: Path) -> LiveScheduler:
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD)
    scheduler.open_journal(path)
    scheduler.advance(2)
    return scheduler


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that has the journal open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        try:
            yield process
        finally:
            process.kill()


def test_another_process_keeps_the_journal_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journalled(path).close()
    before = path.read_bytes()
    with another_process(path) as process:
        with pytest.raises(OasisError, match=REFUSED):
            LiveScheduler.reopen(path)
        assert path.read_bytes() == before
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert LiveScheduler.reopen(path).calls == 1


def test_another_process_leaves_the_journal_when_it_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journalled(path).close()
    with another_process(path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("close\n")
        process.stdin.flush()
        assert process.stdout.readline() == "closed\n"
        assert LiveScheduler.reopen(path).calls == 1


def test_a_process_may_open_again_what_it_lost_track_of(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journalled(path)
    assert LiveScheduler.reopen(path).calls == 1
    first.close()
    first.close()  # nothing more happens


def is_kept_away(path: Path) -> bool:
    """Return whether another process fails to open the journal."""
    program = HOLDER.replace("print(scheduler.calls, flush=True)", "raise SystemExit")
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    return "is open in another process; close it first" in done.stderr


def test_another_process_is_kept_away_after_a_checkpoint_too(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journalled(path)
    first.checkpoint()
    assert is_kept_away(path)
    first.close()
    assert not is_kept_away(path)


def test_another_process_is_kept_away_when_the_scheduler_opened_before_is_gone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    scheduler = journalled(path)
    scheduler = LiveScheduler.reopen(path)  # the first is collected while the second goes on
    assert is_kept_away(path)
    assert scheduler.calls == 1


def test_a_scheduler_whose_journal_was_opened_once_more_makes_no_more_calls(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    first = journalled(path)
    second = LiveScheduler.reopen(path)
    with pytest.raises(OasisError, match="another scheduler of this process has opened"):
        first.advance(3)
    second.advance(4)
    first.close()
    assert is_kept_away(path)
    assert LiveScheduler.reopen(path).now == 4


def test_a_reopening_that_is_refused_leaves_the_journal_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journalled(path)
    with pytest.raises(OasisError, match="policy: expected"):
        LiveScheduler.reopen(path, FIFO())
    assert is_kept_away(path)
    first.advance(3)
    first.close()
    assert not is_kept_away(path)
    assert LiveScheduler.reopen(path).now == 3


def test_a_released_lock_is_there_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lock = JournalLock(path)
    lock.release()
    assert journalled(path).calls == 1


def test_what_fails_on_opening_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journalled(path).close()
    whole = path.read_bytes()
    path.write_bytes(b"hello\n")
    with pytest.raises(OasisError, match="line 1"):
        LiveScheduler.reopen(path)
    path.write_bytes(whole)
    assert LiveScheduler.reopen(path).calls == 1
    with pytest.raises(OSError, match="missing"):
        LiveScheduler.reopen(tmp_path / "missing")
    assert not list(tmp_path.glob("missing*"))


def test_a_scheduler_that_nobody_has_any_more_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journalled(path)
    assert LiveScheduler.reopen(path).calls == 1
