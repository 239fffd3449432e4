"""Two threads that look at frames: on Python 3.11 they may wait for one another for ever."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import pytest

from stageprof_runtime import process
from stageprof_runtime.probes import deadlock
from stageprof_runtime.ring import Ring
from stageprof_runtime.standstill import NEEDED, uncollected

early = pytest.mark.skipif(not NEEDED, reason="collections are elsewhere from Python 3.12 on")

#: Each look makes frame objects; a collection then begins there, and gives the GIL away.
PROGRAM = """
import gc, sys, threading, time

looking = threading.local()

def away(phase, info):
    if getattr(looking, "on", False):
        time.sleep(0.0001)

def look(depth):
    if depth:
        return look(depth - 1)
    looking.on = True
    sys._current_frames()
    looking.on = False

def look_often():
    for _ in range(200):
        look(3)

if {watched}:
    from stageprof_runtime import process
    from stageprof_runtime.probes import deadlock
    from stageprof_runtime.ring import Ring
    process.join("worker", Ring(), [deadlock.install])
gc.callbacks.append(away)
gc.set_threshold(1)
threads = [threading.Thread(target=look_often) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(gc.isenabled())
"""


def ran(*, watched: bool, patience_s: float) -> str:
    """What the program prints."""
    command = [sys.executable, "-c", PROGRAM.format(watched=watched)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=patience_s, check=True, env=os.environ
    )
    return done.stdout.strip()


@pytest.mark.smoke
@early
def test_while_recording_they_do_not() -> None:
    assert ran(watched=True, patience_s=120) == "True"


@pytest.mark.nightly
@early
def test_without_us_they_may() -> None:
    """Else the test above would show nothing."""
    with pytest.raises(subprocess.TimeoutExpired):
        ran(watched=False, patience_s=30)


@pytest.mark.smoke
def test_what_python_has_is_put_back() -> None:
    before = sys._current_frames
    leave = process.join("client", Ring(), [deadlock.install])
    assert (sys._current_frames is not before) == NEEDED
    assert threading.get_ident() in sys._current_frames()
    leave()
    assert sys._current_frames is before


def collects() -> bool:
    return gc.isenabled() and gc.get_threshold()[0] > 0


@early
def test_collecting_goes_on_when_the_last_has_looked() -> None:
    before = gc.get_threshold()
    first, second = uncollected(), uncollected()
    with first:
        with second:
            assert not collects()
        assert not collects()
    assert collects()
    assert gc.get_threshold() == before


@early
def test_a_program_that_collects_nothing_itself_is_left_so() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not collects()
    finally:
        gc.enable()


@early
def test_a_program_that_turns_collections_off_meanwhile_has_them_off() -> None:
    """And one that asks whether they are on, to turn them on again later, is told so."""
    try:
        with uncollected():
            assert gc.isenabled()
            gc.disable()
        assert not collects()
    finally:
        gc.enable()


@early
def test_a_threshold_that_a_program_sets_meanwhile_is_left() -> None:
    before = gc.get_threshold()
    try:
        with uncollected():
            gc.set_threshold(1234)
            with uncollected():
                assert not collects()
        assert gc.get_threshold()[0] == 1234
    finally:
        gc.set_threshold(*before)


@early
def test_a_child_that_is_forked_meanwhile_collects() -> None:
    """Nobody in the child would have it go on."""
    with uncollected():
        pid = os.fork()
        if pid == 0:
            os._exit(0 if collects() else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert collects()
