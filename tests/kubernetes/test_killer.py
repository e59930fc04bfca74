"""The program that is killed again and again: how often it lived, and that nothing is left."""

from __future__ import annotations

import sys

import pytest

from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults.killer import MortalProgram

SAYS_ITS_NUMBER = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_killed_program_lives_again_and_is_gone_in_the_end(tmp_path):
    with MortalProgram([sys.executable, "-c", SAYS_ITS_NUMBER], tmp_path / "home") as program:
        program.kill_and_restart(seed=5, times=6, longest=0.2)
        assert program.lives == 7
        last = program._process
        until(lambda: str(last.pid) in program.log.read_text().split(), "the last life has begun")
        assert last.poll() is None
    assert last.poll() is not None
    assert not (tmp_path / "home").exists()


def test_program_that_ends_by_itself_is_an_error_with_its_last_words(tmp_path):
    with MortalProgram([sys.executable, "-c", "exit('no good')"], tmp_path / "home") as program:
        until(lambda: program._process.poll() is not None, "it has ended")
        with pytest.raises(RuntimeError, match=r"exited by itself \(1\): no good"):
            program.kill()
