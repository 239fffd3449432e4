"""Looking at a recording while it grows: what is new, a copy of what is there, a file of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters import soon
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import RecordingNotWritable, UsageError
from stageprof_runtime.event import ASSIGN, MARK, NO_CAUSE, Place

A = Place("worker", "node-1", 1, "tcp://a:1", 0)
B = Place("scheduler", "node-2", 2, "tcp://b:2", 0)


def batch(place: Place, seq: int, n: int) -> bytes:
    rows: list[tuple[object, ...]] = [(MARK, 100 * seq + i, f"mark {seq}", "") for i in range(n)]
    rows += [(ASSIGN, 100 * seq + i, 5, "tcp://a:1", NO_CAUSE, f"x-{seq}-{i}") for i in range(n)]
    return pack(place, seq, 1000 + seq, rows)


@given(st.lists(st.integers(0, 3), max_size=8), st.data())
def test_what_is_new_is_what_the_whole_has_from_there_on(
    counts: list[int], data: st.DataObject
) -> None:
    store, seen = Store(), []
    read = 0
    for seq, n in enumerate(counts):
        store.add(batch(A, seq, n))
        if data.draw(st.booleans()):
            seen += store.since("mark", read)["t"].tolist()
            read = store.rows("mark")
    seen += store.since("mark", read)["t"].tolist()
    whole = store.table("mark")
    assert seen == whole["t"].tolist()
    for row in range(len(seen) + 2):
        assert {f: v.tolist() for f, v in store.since("mark", row).items()} == {
            f: v[row:].tolist() for f, v in whole.items()
        }


def test_a_copy_stays_as_it_was_and_the_store_grows_on() -> None:
    store = Store({"label": "x"})
    store.add(batch(A, 0, 3))
    copy = store.copy()
    store.add(batch(A, 2, 2))
    store.add(batch(B, 0, 1))

    assert (copy.rows("mark"), store.rows("mark")) == (3, 6)
    assert copy.keys(copy.table("assign")["key"]) == ["x-0-0", "x-0-1", "x-0-2"]
    assert (copy.places, copy.batches, copy.origins[0].lost) == ([A], 1, 0)
    assert (len(store.places), store.batches, store.origins[0].lost) == (2, 3, 1)
    words = copy.strings
    assert [words[i] for i in copy.table("mark")["name"].tolist()] == ["mark 0"] * 3
    assert "mark 2" not in words
    assert store.keys(store.table("assign")["key"])[-1] == "x-0-0"


def test_a_copy_can_grow_by_itself() -> None:
    store = Store()
    store.add(batch(A, 0, 2))
    copy = store.copy()
    copy.add(batch(A, 1, 1))
    assert (copy.rows("mark"), store.rows("mark")) == (3, 2)
    assert [copy.strings[i] for i in copy.table("mark")["name"].tolist()][-1] == "mark 1"
    assert "mark 1" not in store.strings


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector(None, "run", savable=True)
    yield made
    made.close()


def until(collector: Collector, batches: int) -> None:
    done = threading.Event()
    for _ in range(200):
        with collector.lock:
            if collector.growing.batches >= batches:
                return
        done.wait(0.05)
    raise AssertionError("nothing came")


def test_what_is_saved_meanwhile_is_a_whole_recording(collector: Collector, tmp_path: Path) -> None:
    for seq in range(4):
        collector.take(batch(A, seq, 3))
    until(collector, 1)
    snapshot = collector.snapshot()
    collector.save(tmp_path / "a.stageprof")
    saved = Recording.open(tmp_path / "a.stageprof")
    assert saved.complete
    assert saved.store.header["label"] == "run"
    assert saved.store.rows("mark") == snapshot.store.rows("mark") == 12
    assert saved.store.origins[0].lost == 0
    assert not snapshot.complete
    assert (tmp_path / "a.stageprof").stat().st_mode & 0o777 == 0o600


def test_after_the_end_it_can_be_saved_as_well(tmp_path: Path) -> None:
    collector = Collector(None, savable=True)
    collector.take(batch(A, 0, 2))
    whole = collector.close()
    collector.save(tmp_path / "a.stageprof")
    assert Recording.open(tmp_path / "a.stageprof").store.rows("mark") == whole.store.rows("mark")
    assert collector.snapshot().complete


def test_nothing_is_saved_over_what_is_there(collector: Collector, tmp_path: Path) -> None:
    path = tmp_path / "a.stageprof"
    path.write_bytes(b"precious")
    with pytest.raises(RecordingNotWritable):
        collector.save(path)
    link = tmp_path / "link.stageprof"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordingNotWritable):
        collector.save(link)
    assert path.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["a.stageprof", "link.stageprof"]  # noqa: PTH208


def test_where_it_cannot_be_written_nothing_is_left(collector: Collector, tmp_path: Path) -> None:
    with pytest.raises(RecordingNotWritable):
        collector.save(tmp_path / "no" / "a.stageprof")
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_kept_cannot_be_saved(tmp_path: Path) -> None:
    collector = Collector(None)
    try:
        with pytest.raises(UsageError):
            collector.save(tmp_path / "a.stageprof")
    finally:
        collector.close()


def test_what_a_collector_takes_of_a_processor_is_known_while_it_collects() -> None:
    collector = Collector(None)
    cost = collector.cost["collector"]
    try:
        collector.take(batch(A, 0, 100))
        soon(lambda: cost[0] > 0)
        assert 0 < cost[1] < 1e9
        collector.take(batch(A, 1, 100))
        before = cost[1]
        soon(lambda: cost[0] > 1)
        assert cost[1] > before
    finally:
        collector.close()
