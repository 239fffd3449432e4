"""A task of a P2P exchange that waits for the other workers does not compute meanwhile."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import BLOCK, EXCHANGE, SPAN
from stageprof_runtime.stage import STEP


def exchanged() -> Recording:
    """A barrier of 500 ms, of which it waits 300; the other worker loads pieces in 100 of these."""
    made = HandMade(workers=2)
    graph = made.graph(0, 0, 0)
    run = made.run(0, 0, 500, cause=-1 - graph, key=("barrier", 0), finished=500, wanted=True)
    mine, other = made._workers
    made.rows_of(mine).append((BLOCK, ns(100), ns(400), 1, EXCHANGE, 0, 0, 0, ""))
    made.rows_of(other).append((SPAN, STEP["data.load"], ns(200), ns(300), 9, "", 1_000))
    made.wait(0, 500, run, 500)
    return made.recording(500)


def test_it_waits_for_messages_and_for_what_is_pickled() -> None:
    recording = exchanged()
    steps = recording.steps().set_index("step")
    assert steps["wall_s"]["data.transfer"] == pytest.approx(0.2)
    assert steps["wall_s"]["data.load"] == pytest.approx(0.1)
    assert steps["wall_s"]["compute"] == pytest.approx(0.2)
    assert recording.layers().set_index("prefix")["wall_s"]["barrier"] == pytest.approx(0.5)


def test_waiting_is_not_busy() -> None:
    """Nor is it in the busy seconds of its layer, which sum to the account's."""
    recording = exchanged()
    steps = recording.steps().set_index("step")
    assert steps["busy_s"]["compute"] == pytest.approx(0.2)
    assert steps["waited_s"]["data.transfer"] == pytest.approx(0.3)
    assert recording.layers()["execution_s"].sum() == pytest.approx(0.2)


def test_a_replay_leaves_it_in_its_thread() -> None:
    """It makes no other task and waits for none: what it waited takes as long as it took."""
    recording = exchanged()
    assert len(recording.walk.blocks) == 2  # the caller's as well
    assert not len(recording.replay.launching)
