"""The journal: whatever was answered is there again, whenever the process was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oasis import OasisError
from oasis.driver.journal import add_to_journal, begin_journal, read_journal
from oasis.driver.live import INTERRUPTED, SNAPSHOT, LiveScheduler
from oasis.model.files import checksum, encoded
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds
from oasis.online.recourse import planner
from oasis.online.recourse.admission import AtPrices
from oasis.online.recourse.policy import Recourse
from tests import builders
from tests.live import CLUSTER, KINDS, LOOKAHEAD, Drill, random_job
from tests.unit.states import changed_and_loaded, frozen

ROOT = Path(__file__).parents[3]


def killed_and_reopened(directory: Path, kind: str, seed: int) -> None:
    """Kill a real process after a random number of answers; nothing of them is lost."""
    rng = np.random.default_rng(seed)
    steps = 40
    journal, wanted = directory / "journal", int(rng.integers(1, steps))
    command = [sys.executable, "-m", "tests.live", str(journal), kind, str(seed)]
    with subprocess.Popen(
        [*command, str(steps)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        answered = 0
        for _ in range(wanted):
            assert process.stdout.readline()
            answered += 1
        process.send_signal(signal.SIGKILL)
        answered += len(process.stdout.readlines())
    reopened = LiveScheduler.reopen(journal)
    assert answered <= reopened.calls <= min(answered + 1, steps)
    fresh = Drill(KINDS[kind](), seed).run(reopened.calls)
    assert frozen(reopened, directory) == frozen(fresh.scheduler, directory)
    reopened.advance(reopened.now + 1)  # and it goes on
    reopened.close()
    assert LiveScheduler.reopen(journal).calls == reopened.calls


@pytest.mark.parametrize(("kind", "seed"), [("none", 1), ("arrival", 2), ("oasis", 3)])
def test_kill_9_loses_nothing_that_was_answered(tmp_path, kind, seed):
    killed_and_reopened(tmp_path, kind, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_kill_9_at_many_points(tmp_path, kind):
    for seed in range(100, 150):
        directory = tmp_path / str(seed)
        directory.mkdir()
        killed_and_reopened(directory, kind, seed)


def journalled(path: Path, steps: int = 12, **options: object) -> LiveScheduler:
    """A scheduler that has made some calls with a journal open."""
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD, **options)
    scheduler.open_journal(path)
    Drill(scheduler, 4).run(steps)
    return scheduler


def test_a_line_torn_at_any_byte_is_dropped_with_a_note(tmp_path):
    path = tmp_path / "journal"
    journalled(path).close()
    whole = path.read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    fresh = LiveScheduler.recourse(CLUSTER, LOOKAHEAD)
    before = frozen(Drill(fresh, 4).run(11).scheduler, tmp_path)
    for end in (last + 1, last + 8, (last + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        reopened = LiveScheduler.reopen(path)
        assert reopened.notes == (f"{path}: line 13 is torn and was dropped",)
        assert frozen(reopened, tmp_path) == before
        assert path.read_bytes() == whole[:last]
        reopened.close()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path = tmp_path_factory.mktemp("whole") / "journal"
    journalled(path).close()
    return path.read_bytes().splitlines(keepends=True)


def read(path: Path, content: bytes) -> tuple[dict[str, object], ...]:
    path.write_bytes(content)
    return read_journal(path).entries


def test_any_bit_that_flips_in_a_whole_journal_is_found(tmp_path, lines):
    """The last line was answered, too: with its end, or with another byte there, it is not torn."""
    whole, rng = bytearray(b"".join(lines)), np.random.default_rng(1)
    last = range(len(whole) - len(lines[-1]), len(whole))
    for k in (*last[::4], last[-1], *rng.integers(len(whole), size=50)):
        for bit in range(8) if k == last[-1] else rng.integers(8, size=1):
            whole[k] ^= 1 << bit
            with pytest.raises(OasisError, match=r"^[^\n]*journal: [^\n]*line[^\n]*$"):
                read(tmp_path / "journal", whole)
            whole[k] ^= 1 << bit


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines[:3], *lines[4:]], "line 4: expected call 3, got 4"),
        (lambda lines: [*lines[:4], *lines[3:]], "line 5: expected call 4, got 3"),
        (lambda lines: [*lines, lines[-1]], "line 14: expected call 13, got 12"),
        (lambda lines: [*lines, lines[0]], "line 14: expected call 13, got None"),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], "line 4: expected call 3,"),
        (lambda lines: [*lines[:-1], b"\0" * 9], "line 13: expected a line with its checksum"),
        (lambda lines: [*lines, lines[-1][:-1] + b" "], "line 14: expected a line with its"),
        (lambda lines: [lines[0][:-5]], "line 1: expected a line with its checksum"),
    ],
)
def test_lines_that_are_not_those_of_the_calls_in_order_are_refused(
    tmp_path, lines, change, expected
):
    with pytest.raises(OasisError, match=f"journal: {expected}"):
        read(tmp_path / "journal", b"".join(change(lines)))


def test_a_journal_cut_short_anywhere_keeps_the_calls_before(tmp_path, lines):
    path, whole = tmp_path / "journal", b"".join(lines)
    entries = read(path, whole)
    for end in np.random.default_rng(2).integers(len(lines[0]), len(whole), size=100):
        assert read(path, whole[:end]) == entries[: whole[:end].count(b"\n") - 1]


def test_a_journal_that_ends_before_its_snapshot_is_an_error(tmp_path):
    """Calls that went on behind the gap could not be read again."""
    path = tmp_path / "journal"
    scheduler = journalled(path, 3)
    before = path.read_bytes()
    scheduler.checkpoint()
    scheduler.close()
    path.write_bytes(before[: before[:-1].rindex(b"\n") + 1])
    with pytest.raises(OasisError, match="expected the 3 calls of the snapshot, got 2"):
        LiveScheduler.reopen(path)


@pytest.mark.parametrize("kind", ["none", "oasis"])
def test_a_snapshot_that_was_changed_is_refused_in_one_line(tmp_path, kind):
    """Also by somebody who adds the checksum up anew, as far as it cannot be restored."""
    path = tmp_path / "saved"
    Drill(KINDS[kind](), 4).run(12).scheduler.save(path)
    refused = changed_and_loaded(path, SNAPSHOT, LiveScheduler.load, changes=60)
    assert refused > 20


def test_an_answer_that_does_not_repeat_is_an_error(tmp_path):
    path = tmp_path / "journal"
    journalled(path).close()
    *lines, _ = path.read_bytes().splitlines(keepends=True)
    entry = read_journal(path).entries[-1]
    path.write_bytes(b"".join(lines) + encoded(entry | {"answer": "00000000"}))
    with pytest.raises(OasisError, match="call 12 does not give the recorded answer"):
        LiveScheduler.reopen(path)


def test_a_snapshot_older_than_its_journal_is_an_error(tmp_path):
    """No call is missing from the journal, but those before it are in no file any more."""
    path, snapshot = tmp_path / "journal", tmp_path / "journal.snapshot"
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD)
    scheduler.open_journal(path)
    older = snapshot.read_bytes()
    scheduler.advance(1)
    scheduler.checkpoint()
    scheduler.close()
    snapshot.write_bytes(older)
    with pytest.raises(OasisError, match="expected a snapshot of 1 calls or more, got one of 0"):
        LiveScheduler.reopen(path)


def test_a_line_that_is_no_call_is_an_error(tmp_path):
    path = tmp_path / "journal"
    journalled(path).close()
    path.write_bytes(path.read_bytes() + encoded({"call": "explode", "number": 13}))
    with pytest.raises(OasisError, match="journal: expected a call and its answer"):
        LiveScheduler.reopen(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "line 1: expected a line with its checksum"),
        (b"hello\n", "line 1: expected a line with its checksum"),
        *(
            (encoded(first), "expected 'oasis-journal 1' in the first line")
            for first in ({"kind": "oasis-journal 2", "calls": 0}, {"calls": 0})
        ),
    ],
)
def test_a_file_that_is_no_journal_is_an_error(tmp_path, content, expected):
    path = tmp_path / "journal"
    journalled(path).close()
    path.write_bytes(content)
    with pytest.raises(OasisError, match=f"journal: {expected}$"):
        LiveScheduler.reopen(path)


def test_a_checkpoint_interrupted_before_the_new_journal_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    scheduler = journalled(path)
    state = frozen(scheduler, tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("oasis.driver.live.begin_journal", fail)
        with pytest.raises(OSError, match="No space left"):
            scheduler.checkpoint()
    with pytest.raises(OasisError, match="reopen the journal"):
        scheduler.advance(scheduler.now + 1)
    reopened = LiveScheduler.reopen(path)
    assert frozen(reopened, tmp_path) == state
    assert len(read_journal(path).entries) == 12
    reopened.checkpoint()
    assert read_journal(path).entries == ()
    reopened.close()
    assert frozen(LiveScheduler.reopen(path), tmp_path) == state


def test_a_refused_call_leaves_no_line(tmp_path):
    path = tmp_path / "journal"
    scheduler = journalled(path)
    size = path.stat().st_size
    with pytest.raises(OasisError, match="job_id"):
        scheduler.cancel("nobody")
    assert path.stat().st_size == size
    scheduler.advance(np.int64(scheduler.now + 1))
    assert path.stat().st_size > size


def test_decisions_made_under_a_limit_in_seconds_are_repeated(tmp_path, monkeypatch):
    """The rounds that there was time for are in the journal."""
    path = tmp_path / "journal"
    scheduler = LiveScheduler.recourse(CLUSTER, LOOKAHEAD, seconds=1e9)
    ticks = iter(range(10**9))
    scheduler.open_journal(path)
    with monkeypatch.context() as context:
        context.setattr(planner, "perf_counter", lambda: next(ticks) % 7 * 5e8)
        Drill(scheduler, 4).run(20)
    assert scheduler.totals.cut_short > 0
    state = frozen(scheduler, tmp_path)
    scheduler.close()
    reopened = LiveScheduler.reopen(path)
    assert frozen(reopened, tmp_path) == state
    assert reopened.policy.rounds_given is None


def test_a_journalled_job_has_a_utility_that_files_know(tmp_path):
    class Halving:
        def __call__(self, delay: object) -> object:
            return 8.0 * 0.5 ** np.asarray(delay)

        def log_value(self, delay: object) -> object:
            return np.log(8.0) + np.log(0.5) * np.asarray(delay)

    scheduler = journalled(tmp_path / "journal")
    job = random_job(np.random.default_rng(0), "own", scheduler.now)
    object.__setattr__(job, "utility", Halving())
    with pytest.raises(OasisError, match="utility: expected one of"):
        scheduler.submit(job)
    assert "own" not in scheduler.jobs
    scheduler.close()  # without a journal it may be planned, but no file takes it
    scheduler.submit(job)
    with pytest.raises(OasisError, match=r"^job own.*utility: expected one of"):
        scheduler.save(tmp_path / "saved")


FOUR = builders.cluster(gpus=2.0, servers=2)
job = partial(builders.job, latest=9.0, workers=4)  # all four GPUs, worth something until delay 9


def lasting() -> LiveScheduler:
    return LiveScheduler(Recourse.rolling(8), FOUR)


def submit(calls: LiveScheduler, name: str, slots: int = 1) -> Any:
    return calls.submit(job(name, calls.now, slots, 5.0))


def test_after_closing_calls_go_on_without_a_journal(tmp_path):
    path, calls = tmp_path / "journal", lasting()
    calls.open_journal(path)
    calls.close()
    size = path.stat().st_size
    submit(calls, "a")
    assert path.stat().st_size == size
    calls.open_journal(tmp_path / "other")  # and another may be opened
    assert LiveScheduler.reopen(tmp_path / "other").jobs == ("a",)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda calls, path: calls.checkpoint(), "journal: none is open"),
        (
            lambda calls, path: (calls.open_journal(path), calls.open_journal(path)),
            "journal: {path} is open already",
        ),
        (
            lambda calls, path: (path.write_text("x"), calls.open_journal(path)),
            "journal: expected a new file, {path} exists",
        ),
    ],
)
def test_journals_out_of_order_are_refused(act, message, tmp_path):
    path = tmp_path / "journal"
    with pytest.raises(OasisError) as caught:
        act(lasting(), path)
    assert str(caught.value) == message.format(path=path)


def test_after_a_call_that_was_interrupted_nothing_is_answered(tmp_path, monkeypatch):
    """The state may be ahead of the journal; only the journal says what was answered."""
    path, calls = tmp_path / "journal", lasting()
    calls.open_journal(path)
    submit(calls, "a")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("oasis.driver.live.add_to_journal", stop)
        with pytest.raises(KeyboardInterrupt):
            submit(calls, "b")
    for attempt in (
        lambda: submit(calls, "c"),
        calls.checkpoint,
        lambda: calls.save(tmp_path / "s"),
    ):
        with pytest.raises(OasisError) as caught:
            attempt()
        assert str(caught.value) == INTERRUPTED
    assert LiveScheduler.reopen(path).jobs == ("a",)


def test_a_line_holds_the_checksum_of_its_entry():
    """CRC-32 of the bytes "123456789" is cbf43926, by the catalogue of such codes."""
    assert checksum(b"123456789") == "cbf43926"
    assert checksum(b"") == "00000000"
    body = '{"call":"advance","now":2}'
    line = encoded({"call": "advance", "now": 2})
    assert line == f'{{"crc":"{checksum(body.encode())}","entry":{body}}}\n'.encode()
    assert json.loads(line)["entry"] == {"call": "advance", "now": 2}
    line = encoded({"job": "größe\u2028\n"})
    assert line.isascii()
    assert line.count(b"\n") == 1
    with pytest.raises(ValueError, match="Out of range float"):
        encoded({"value": float("nan")})


def test_a_journal_that_has_gone_is_not_made_anew(tmp_path):
    path = tmp_path / "journal"
    begin_journal(path, calls=0)
    path.unlink()
    with pytest.raises(OSError, match="journal"):
        add_to_journal(path, {"number": 1})
    assert not path.exists()


def test_a_rule_of_admission_of_ones_own_serves_and_goes_on(tmp_path):
    """Whoever goes on brings the policy, as with any policy of his own."""

    class Own(AtPrices):
        pass

    def make() -> Recourse:
        bounds = PriceBounds.from_jobs([job("past", 0, 1, 5.0)], FOUR, 8)
        return Recourse.rolling(8, "arrival", admission=Own(bounds, 0.1))

    calls = LiveScheduler(make(), FOUR)
    calls.open_journal(tmp_path / "journal")
    submit(calls, "a", slots=2)
    with pytest.raises(OasisError, match="policy: expected one like the one that was saved"):
        LiveScheduler.reopen(tmp_path / "journal")
    calls.close()
    expected = submit(calls, "b").to_dict()
    again = LiveScheduler.reopen(tmp_path / "journal", make())
    assert again.jobs == ("a",)
    assert submit(again, "b").to_dict() == expected


def test_bounds_that_are_computed_are_those_that_were_saved(tmp_path):
    bounds = PriceBounds.from_jobs([job("past", 0, 1, 5.0)], FOUR, 8)
    calls = LiveScheduler(OASiS.rolling(8, lambda cluster: bounds), FOUR)
    submit(calls, "a", slots=2)
    calls.save(tmp_path / "state")
    again = LiveScheduler.load(tmp_path / "state")
    assert submit(again, "b").to_dict() == submit(calls, "b").to_dict()
    again.save(tmp_path / "once more")
    assert LiveScheduler.load(tmp_path / "once more").jobs == again.jobs
