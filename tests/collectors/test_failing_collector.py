"""A collector whose thread fails: the run goes on, nothing piles up, and what is missing is told.

Whatever it fails with: it may be that no memory is left.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from dask import delayed

import stageprof
from clusters import soon
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage import collector as module
from stageprof_collectors.storage.collector import Collector
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, Place

PLACE = Place("client", "host", 1, "client", 1)
ERRORS = (MemoryError("planted"), RecursionError("planted"), SystemExit("planted"))


def batch(seq: int) -> bytes:
    return pack(PLACE, seq, 1_000 + seq, [(MARK, 1, "m", "x")])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GATHER_S", 0.001)
    monkeypatch.setattr(module, "CROWD_S", 0.002)


def failing(
    made: Collector,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    name: str = "_keep",
    times: int = 1,
) -> None:
    """Have the collector's thread fail with the second batch that it is given."""
    made.take(batch(0))
    soon(lambda: made.cost["collector"][0] > 0)
    plain, left = getattr(made, name), [error] * times

    def fail(*args: Any) -> Any:
        if left:
            raise left.pop()
        return plain(*args)

    monkeypatch.setattr(made, name, fail)
    made.take(batch(1))
    soon(lambda: made._failed)


def goes_on_being_emptied(made: Collector) -> None:
    for seq in range(2, 500):
        made.take(batch(seq))
    soon(lambda: not made._waiting and not made._unseen)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_file_holds_what_was_kept_and_says_that_it_is_not_whole(
    error: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Collector(tmp_path / "a.stageprof")
    failing(made, monkeypatch, error)
    goes_on_being_emptied(made)
    recording = made.close()
    assert not recording.complete
    assert recording.store.rows("mark") == 1
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"a.stageprof stopped: {type(error).__name__}: planted. " in message
    assert "Free some space" not in message


@pytest.mark.parametrize("savable", [True, False])
def test_one_in_memory_says_why_and_so_does_what_is_saved_of_it(
    savable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = Collector(None, savable=savable)
    failing(made, monkeypatch, MemoryError("planted"))
    goes_on_being_emptied(made)
    recording = made.close()
    assert recording.coverage()["incomplete_reason"] == "MemoryError: planted"
    assert recording.store.rows("mark") == 1
    assert len(caplog.records) == 1
    if savable:
        made.save(tmp_path / "a.stageprof")
        saved = Recording.open(tmp_path / "a.stageprof")
        assert (saved.complete, saved.store.rows("mark")) == (False, 1)


@pytest.mark.parametrize(("name", "times"), [("_gather", 2), ("_see", 1), ("_tell", 2)])
def test_wherever_it_fails_it_ends_and_says_so(
    name: str,
    times: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also where it fails again as it is about to tell."""
    made = Collector(tmp_path / "a.stageprof")
    failing(made, monkeypatch, MemoryError(), name, times)
    goes_on_being_emptied(made)
    assert not made.close().complete
    assert not made._thread.is_alive()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["STUCK", "STUCK_BYTES"])
def test_a_disk_that_takes_nothing_for_long_fills_no_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of files that is gone lets a write wait for ever, and raises nothing.

    Batches of a megabyte were too many once 20 GB of them waited.
    """
    monkeypatch.setattr(module, name, 50 if name == "STUCK" else 50 * len(batch(2)))
    made = Collector(tmp_path / "run.stageprof")
    made.take(batch(0))
    soon(lambda: made.cost["collector"][0] > 0)
    writer, stuck, free = made._writer, threading.Event(), threading.Event()
    assert writer is not None
    write = writer.write

    def waits(*batches: bytes) -> bool:
        stuck.set()
        free.wait(30)
        return write(*batches)

    monkeypatch.setattr(writer, "write", waits)
    made.take(batch(1))
    assert stuck.wait(30)
    for seq in range(2, 500):
        made.take(batch(seq))
    assert 45 < len(made._waiting) <= 50
    assert len(made._unseen) <= 51
    free.set()
    recording = made.close()
    assert not recording.complete
    assert recording.store.rows("mark") == 2


def test_the_end_of_a_recording_does_not_wait_for_ever_for_a_disk_that_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The program hung at the end of its block."""
    monkeypatch.setattr(module, "STILL_S", 0.01)
    made = Collector(tmp_path / "run.stageprof")
    made.take(batch(0))
    soon(lambda: made.cost["collector"][0] > 0)
    writer, free = made._writer, threading.Event()
    assert writer is not None
    write = writer.write

    def waits(*batches: bytes) -> bool:
        free.wait(30)
        return write(*batches)

    monkeypatch.setattr(writer, "write", waits)
    made.take(batch(1))
    recording = made.close()
    assert not recording.complete
    assert "nothing written" in recording.store.incomplete_reason
    assert len(caplog.records) == 1

    free.set()  # the server is back
    made._thread.join(30)
    assert writer.closed
    late = Recording.open(tmp_path / "run.stageprof")
    assert (late.complete, late.store.rows("mark")) == (False, 2)


@pytest.mark.parametrize("name", ["run.stageprof", None])
def test_a_program_that_may_begin_no_thread_goes_on_and_is_recorded(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have no more of them; the block that was to be recorded did not run."""
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("stageprof"):
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with stageprof.profile(name and tmp_path / name) as prof:
        assert delayed(len)([1, 2]).compute(scheduler="sync") == 2
    assert prof.recording.complete
    assert len(prof.recording.tasks()) == 1


def test_a_file_whose_end_is_interrupted_may_be_recorded_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed open and locked for as long as the process lived."""
    made = Collector(tmp_path / "run.stageprof")
    made.take(batch(0))
    soon(lambda: made.cost["collector"][0] > 0)
    finish = made._finish

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(made, "_finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.close()
    half = Recording.open(tmp_path / "run.stageprof")
    assert (half.complete, half.store.rows("mark")) == (False, 1)
    assert Collector(tmp_path / "run.stageprof").close().complete
    finish()


def test_a_recording_in_memory_that_is_full_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was complete, although most batches had been left out."""
    made = Collector(None, "test")
    monkeypatch.setattr(made._store, "_max_memory", 3_000)
    assert made.failed == ""
    for seq in range(100):
        made.take(batch(seq))
    recording = made.close()
    assert not recording.complete
    assert made.failed == recording.store.incomplete_reason
    assert "memory" in recording.store.incomplete_reason
    assert "record to a file" in caplog.text
