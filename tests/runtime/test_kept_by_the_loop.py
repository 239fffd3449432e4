"""A worker's loop keeps what is not sent yet as it comes to its timer: nobody is woken for that."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest

import stageprof
from clusters import local
from stageprof_runtime import locked, shipper, tail, tick
from stageprof_runtime.event import MARK, Place
from stageprof_runtime.guard import Watch
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import ENOUGH, LATELY_NS, ROUNDS, Shipper
from stageprof_runtime.tail import Tail
from stageprof_runtime.tick import COMES_NS, Ticks

pytestmark = pytest.mark.skipif(not locked.AVAILABLE, reason="no locks of this kind here")

PLACE = Place("worker", "host", 7, "tcp://w:1", 42)
SESSION = "stageprof-of-a-test"


class Worker:
    """A shipper with a tail, and a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10**9
        monkeypatch.setattr(shipper, "now_ns", lambda: self.now)
        self.sent: list[bytes] = []
        self.shipper = Shipper(PLACE, Ring(), self.sent.append)
        self.tail = self.shipper.tail = Tail(SESSION, PLACE)
        self.new(1)
        self.shipper._round()  # the first batch goes at once
        self.new(1)
        self.shipper._round()  # the thread begins the file

    def new(self, rows: int) -> None:
        for i in range(rows):
            self.shipper.ring.emit((MARK, i, "name", f"label {i}"))

    def kept(self) -> int:
        """Rows in the file."""
        if self.tail._there is None:
            return 0
        data = Path(self.tail._there.path).read_bytes()
        unpacker = msgpack.Unpacker(use_list=True)
        unpacker.feed(data)
        looks: list[Any] = list(unpacker)[1:]
        return sum(len(rows) for _, rows, _ in looks)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """One whose tail is in what counts as memory."""
    monkeypatch.setattr(tail, "MEMORY", os.fspath(tmp_path))
    return Worker(monkeypatch)


def test_what_is_new_is_kept_as_the_loop_comes_and_sent_later(worker: Worker) -> None:
    before = len(worker.sent)
    worker.new(3)
    worker.shipper.come()
    assert worker.kept() == 4
    assert len(worker.sent) == before
    (batch,) = worker.shipper.drain()
    assert msgpack.unpackb(batch)["tables"]["mark"][0] == 4


def test_the_thread_sleeps_for_the_rest_of_the_half_second_while_the_loop_comes(
    worker: Worker,
) -> None:
    worker.shipper.come()
    slept = []
    for _ in range(3):
        worker.shipper._round()
        slept.append(worker.shipper._lasts)
        worker.shipper.come()
    assert slept[-2:] == [ROUNDS, ROUNDS]


def test_what_is_done_every_half_second_is_done_at_once_if_asked_for(worker: Worker) -> None:
    """A worker may live for less than that after a cluster was joined."""
    done: list[int] = []
    worker.shipper.every.append(lambda: done.append(worker.now))
    worker.shipper._round()
    assert done == []
    worker.shipper.hurry()
    assert worker.shipper._slept()  # not for a tenth of a second: it was woken
    worker.shipper._round()
    worker.shipper._round()
    assert len(done) == 1


def test_where_the_loop_stands_still_the_thread_keeps_what_is_new(worker: Worker) -> None:
    worker.shipper.come()
    worker.shipper._round()
    assert worker.shipper._lasts > 1
    worker.now += LATELY_NS
    worker.new(2)
    worker.shipper._waited = 0
    worker.shipper._round()
    assert worker.shipper._lasts == 1
    assert worker.kept() == 3


def test_the_loop_wakes_the_thread_once_there_is_much(worker: Worker) -> None:
    worker.shipper._lasts = ROUNDS
    worker.new(ENOUGH)
    worker.shipper.come()
    before = len(worker.sent)
    assert worker.shipper._slept()  # at once
    assert worker.shipper._lasts == 1
    worker.shipper._round()
    assert len(worker.sent) == before + 1


def test_the_loop_does_not_wait_while_the_thread_packs(worker: Worker) -> None:
    worker.new(2)
    with worker.shipper._packing:
        worker.shipper.come()
    assert worker.kept() == 1
    worker.shipper.come()
    assert worker.kept() == 3


def test_a_file_on_a_disk_is_left_to_the_thread(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "MEMORY", os.fspath(tmp_path / "elsewhere"))
    worker.new(2)
    worker.shipper.come()
    assert worker.kept() == 1
    worker.shipper._waited = 0
    worker.shipper._round()
    assert worker.shipper._lasts == 1
    assert worker.kept() == 3


def test_a_file_that_is_full_stops_no_loop_and_leaves_it_to_nobody(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(worker.tail, "keep", fail)
    for i in range(20):
        worker.new(1)
        worker.shipper.come()
        assert worker.shipper._tailing.failures == min(i + 1, 10)
    assert worker.shipper._tailing.disabled
    rows = [msgpack.unpackb(batch)["tables"]["mark"][0] for batch in worker.shipper.drain()]
    assert rows == [22]  # all of them, and that it was put away


def test_a_timer_says_ten_times_a_second_that_the_loop_comes() -> None:
    came: list[int] = []
    now = 0
    ticks = Ticks(None, Ring(), Watch("ticks"), lambda: came.append(now))
    for _ in range(500):
        now += round(tick.PERIOD_S * 1e9)
        ticks.note(now, 0, lambda: 0)
    assert len(came) == 100
    assert min(b - a for a, b in itertools.pairwise(came)) >= COMES_NS


def naps() -> int:
    """Waits more than it computes, so that the loop is free."""
    for _ in range(40):
        time.sleep(0.05)  # what the task does, nobody waits for it
    return 1


@pytest.mark.cluster
@pytest.mark.skipif(not os.access(tail.MEMORY, os.W_OK), reason="no files in memory here")
def test_on_a_real_cluster_the_thread_wakes_twice_a_second_and_not_ten_times() -> None:
    with local(1) as client:
        started = time.monotonic()
        with stageprof.profile() as prof:
            assert client.submit(naps).result() == 1
        took = time.monotonic() - started
    (wakes,) = (
        origin.cost["ship"][0]
        for origin in prof.recording.store.origins
        if origin.place.role == "worker"
    )
    assert wakes < 7 * took
