"""A journal has one writer at a time, however it ends."""

from __future__ import annotations

import copy
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from baselines import FIFO
from oasis import LiveScheduler, OasisError
from oasis.driver.live import TAKEN_OVER
from tests.live import CLUSTER, LOOKAHEAD, random_job

ROOT = Path(__file__).parents[3]
REFUSED = r"^journal: .*journal is open in another process; close it first$"
HOLDER = """
import sys
from oasis import LiveScheduler
scheduler = LiveScheduler.reopen(sys.argv[1])
print(scheduler.calls, flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX has the locks")


def journalled(path: Path) -> LiveScheduler:
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD)
    scheduler.open_journal(path)
    scheduler.advance(2)
    return scheduler


def test_another_process_keeps_the_journal_until_it_is_killed(tmp_path):
    path = tmp_path / "journal"
    journalled(path).close()
    before = path.read_bytes()
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
        with pytest.raises(OasisError, match=REFUSED):
            LiveScheduler.reopen(path)
        assert path.read_bytes() == before
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert LiveScheduler.reopen(path).calls == 1


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


def test_another_process_is_kept_away_after_a_checkpoint_too(tmp_path):
    path = tmp_path / "journal"
    first = journalled(path)
    first.checkpoint()
    assert is_kept_away(path)
    first.close()
    assert not is_kept_away(path)


def test_another_process_is_kept_away_when_the_scheduler_opened_before_is_gone(tmp_path):
    path = tmp_path / "journal"
    scheduler = journalled(path)
    scheduler = LiveScheduler.reopen(path)  # the first is collected while the second goes on
    assert is_kept_away(path)
    assert scheduler.calls == 1


def test_a_scheduler_whose_journal_was_opened_once_more_makes_no_more_calls(tmp_path):
    path = tmp_path / "journal"
    first = journalled(path)
    second = LiveScheduler.reopen(path)
    with pytest.raises(OasisError, match="the journal belongs to another scheduler"):
        first.advance(3)
    second.advance(4)
    first.close()
    first.close()  # nothing more happens
    assert is_kept_away(path)
    assert LiveScheduler.reopen(path).now == 4


def test_a_reopening_that_is_refused_leaves_the_journal_where_it_was(tmp_path):
    path = tmp_path / "journal"
    first = journalled(path)
    with pytest.raises(OasisError, match="policy: expected"):
        LiveScheduler.reopen(path, FIFO())
    assert is_kept_away(path)
    first.advance(3)
    first.close()
    assert not is_kept_away(path)
    assert LiveScheduler.reopen(path).now == 3


def test_what_fails_on_opening_holds_nothing(tmp_path):
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


def test_a_scheduler_that_nobody_has_any_more_holds_nothing(tmp_path):
    path = tmp_path / "journal"
    journalled(path)
    assert not is_kept_away(path)


def in_a_fork(act: Callable[[], object], meanwhile: Callable[[], object] = int) -> str:
    """Return what `act` says in a process that is forked off: the error or the result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            said = str(act())
        except OasisError as error:
            said = f"OasisError: {error}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    meanwhile()
    os.waitpid(child, 0)
    with open(reading, encoding="utf-8") as stream:
        return stream.read()


def test_a_process_that_is_forked_off_makes_no_call_of_the_journal(tmp_path):
    path = tmp_path / "journal"
    scheduler = journalled(path)
    job = random_job(np.random.default_rng(1), "new", 2)
    for act in (
        lambda: scheduler.advance(5),
        lambda: scheduler.quote(job),
        scheduler.checkpoint,
        lambda: scheduler.save(tmp_path / "saved"),
        lambda: scheduler.open_journal(tmp_path / "other"),
    ):
        assert in_a_fork(act) == f"OasisError: {TAKEN_OVER}"
    assert "close it first" in in_a_fork(lambda: (scheduler.close(), LiveScheduler.reopen(path)))
    assert in_a_fork(lambda: (scheduler.close(), scheduler.advance(9))[1].now) == "9"
    scheduler.advance(5)
    assert "close it first" in in_a_fork(lambda: LiveScheduler.reopen(path))
    scheduler.close()
    assert in_a_fork(lambda: LiveScheduler.reopen(path).now) == "5"


def test_a_process_forked_off_while_another_thread_calls_can_close():
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with scheduler._in_turn():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    try:
        assert in_a_fork(lambda: (scheduler.close(), scheduler.now)[1]) == "0"
    finally:
        leave.set()
        thread.join()


def test_a_lock_of_a_fork_survives_what_it_inherited(tmp_path):
    """A journal that a process opened itself stays its own when it drops what it inherited."""
    path = tmp_path / "journal"
    inherited = [journalled(path)]

    def reopened() -> str:
        again = None
        while again is None:
            try:
                again = LiveScheduler.reopen(path)
            except OasisError:
                time.sleep(0.01)
        inherited.clear()
        gc.collect()
        return in_a_fork(lambda: LiveScheduler.reopen(path))

    assert "close it first" in in_a_fork(reopened, meanwhile=inherited[0].close)


@pytest.mark.parametrize("has_journal", [False, True])
def test_threads_share_a_scheduler_call_by_call(tmp_path, has_journal):
    path = tmp_path / "journal"
    scheduler = LiveScheduler(FIFO(), CLUSTER)
    if has_journal:
        scheduler.open_journal(path)

    def work(name: str) -> None:
        rng = np.random.default_rng(ord(name))
        for k in range(10):
            job = random_job(rng, f"{name}{k}", 0)
            assert scheduler.quote(job).decision.job_id == job.id
            scheduler.submit(job)
            assert job.id in scheduler.jobs
            scheduler.plan()
            scheduler.save(tmp_path / name)
            scheduler.revise(job.id, 3)
            scheduler.cancel(job.id)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, "abcd"))
    finally:
        sys.setswitchinterval(before)
    assert (scheduler.calls, scheduler.totals.cancelled, scheduler.jobs) == (120, 40, ())
    scheduler.close()
    if has_journal:
        assert LiveScheduler.reopen(path, FIFO()).totals == scheduler.totals


def test_a_copy_has_turns_of_its_own_and_no_journal(tmp_path):
    scheduler = LiveScheduler(FIFO(), CLUSTER)
    scheduler.open_journal(tmp_path / "journal")
    copied = copy.deepcopy(scheduler)
    copied.advance(3)
    copied.close()
    assert (copied.now, scheduler.now) == (3, 0)
    scheduler.advance(2)
    scheduler.close()
    assert LiveScheduler.reopen(tmp_path / "journal", FIFO()).now == 2
