"""Saving, journals and checkpoints of a live scheduler, through the class that does them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from oasis.driver.journal import add_to_journal, begin_journal
from oasis.driver.live import INTERRUPTED, LiveScheduler
from oasis.model.errors import OasisError
from oasis.model.files import checksum, encoded
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import AtPrices
from oasis.online.recourse.policy import Recourse
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
job = partial(builders.job, latest=9.0, workers=4)  # all four GPUs, worth something until delay 9


def lasting() -> LiveScheduler:
    return LiveScheduler(Recourse.rolling(8), CLUSTER)


def submit(calls: LiveScheduler, name: str, slots: int = 1) -> Any:
    return calls.submit(job(name, calls.now, slots, 5.0))


def test_after_closing_calls_go_on_without_a_journal(tmp_path: Path) -> None:
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
def test_journals_out_of_order_are_refused(
    act: Callable[[LiveScheduler, Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    with pytest.raises(OasisError) as caught:
        act(lasting(), path)
    assert str(caught.value) == message.format(path=path)


def test_after_a_call_that_was_interrupted_nothing_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_line_holds_the_checksum_of_its_entry() -> None:
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


def test_a_journal_that_has_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    begin_journal(path, calls=0)
    path.unlink()
    with pytest.raises(OSError, match="journal"):
        add_to_journal(path, {"number": 1})
    assert not path.exists()


def test_a_rule_of_admission_of_ones_own_serves_and_goes_on(tmp_path: Path) -> None:
    """Whoever goes on brings the policy, as with any policy of his own."""

    class Own(AtPrices):
        pass

    def make() -> Recourse:
        bounds = PriceBounds.from_jobs([job("past", 0, 1, 5.0)], CLUSTER, 8)
        return Recourse.rolling(8, "arrival", admission=Own(bounds, 0.1))

    calls = LiveScheduler(make(), CLUSTER)
    calls.open_journal(tmp_path / "journal")
    submit(calls, "a", slots=2)
    with pytest.raises(OasisError, match="policy: expected one like the one that was saved"):
        LiveScheduler.reopen(tmp_path / "journal")
    calls.close()
    expected = submit(calls, "b").to_dict()
    again = LiveScheduler.reopen(tmp_path / "journal", make())
    assert again.jobs == ("a",)
    assert submit(again, "b").to_dict() == expected


def test_bounds_that_are_computed_are_those_that_were_saved(tmp_path: Path) -> None:
    bounds = PriceBounds.from_jobs([job("past", 0, 1, 5.0)], CLUSTER, 8)
    calls = LiveScheduler(OASiS.rolling(8, lambda cluster: bounds), CLUSTER)
    submit(calls, "a", slots=2)
    calls.save(tmp_path / "state")
    again = LiveScheduler.load(tmp_path / "state")
    assert submit(again, "b").to_dict() == submit(calls, "b").to_dict()
    again.save(tmp_path / "once more")
    assert LiveScheduler.load(tmp_path / "once more").jobs == again.jobs
