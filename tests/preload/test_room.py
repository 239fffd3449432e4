"""Where there is no room, the recorder keeps what it can, and says what it could not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from preload.shipped import (
    ABOUT,
    SCHEDULER,
    WORKER,
    begins,
    ends,
    forget_first,
    hello,
    look,
    opened,
    roll,
    shipped,
)  # fmt: skip
from stageprof.flight import said
from stageprof_runtime.event import ASSIGN, MARK, NODE
from stageprof_runtime.flight import basis
from stageprof_runtime.flight import segments as module
from stageprof_runtime.flight.basis import Basis
from stageprof_runtime.flight.segments import Segments


def taken(folder: Path) -> int:
    """Bytes on the disk."""
    return sum(path.stat().st_size for path in folder.iterdir())


def disk(folder: Path, size: int) -> Callable[[int, bytes], int]:
    """`os.write` on a disk of a size on which nothing else is."""
    write = os.write

    def limited(fd: int, data: bytes) -> int:
        room = size - taken(folder)
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, bytes(data[:room]))

    return limited


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def noise(seq: int, rows: int = 100) -> bytes:
    """A batch that takes 20 bytes a row, however well it is compressed."""
    marks = [(MARK, seq, "task failed", os.urandom(20).hex()) for _ in range(rows)]
    return shipped(WORKER, seq, *marks)


def test_a_full_disk_drops_and_counts_and_nothing_else(
    folder: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0)
    write = os.write

    def full(fd: int, data: bytes) -> int:
        write(fd, bytes(data[:5]))  # the part that still fits
        raise OSError(errno.ENOSPC, "No space left on device")

    segments.write(hello())
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        segments.write([shipped(SCHEDULER, 1)])
    segments.write([begins(1, 2)])
    roll(segments)
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        segments.write([shipped(SCHEDULER, 3)])
    segments.write(ends(1, 4, 2))
    for file, _ in segments.files():  # which says what was dropped, too
        os.close(file)
    segments.close()
    recording, window = opened(folder)

    assert recording.tasks()["key"].tolist() == ["long-1"]
    lost = {origin.place.role: origin.lost for origin in recording.store.origins}
    assert lost["scheduler"] == 2
    assert window.dropped == {"disk: No space left on device": 2}


@pytest.mark.parametrize("cut", ["ftruncate", "lseek", ""])
def test_a_disk_that_stays_full_gets_no_file_for_each_try(
    cut: str, folder: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether what fitted can be taken back or not; what was there before stays."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    segments.write(hello())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    roll(segments)
    monkeypatch.setattr(module, "AGAIN_S", 0)
    files = psutil.Process().num_fds()
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        if cut:
            patched.setattr(f"os.{cut}", full)
        for seq in range(20):
            segments.write([shipped(SCHEDULER, seq)])
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert psutil.Process().num_fds() == files
    assert segments.dropped == {"disk: No space left on device": 20}
    segments.write([begins(1, 2)])
    assert len(list(folder.iterdir())) == 2
    segments.close()


def test_on_a_disk_smaller_than_the_size_the_oldest_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the size had been that of the disk: what is kept is the latest."""
    monkeypatch.setattr("os.write", disk(folder, 70_000))
    segments = Segments(str(folder), ABOUT, 10, 100_000)
    for seq in range(400):
        segments.write([noise(seq)])
    segments.close()
    recording, window = opened(folder)

    assert segments.dropped == {}
    assert window.overwritten
    assert recording.coverage()["batches_lost"] == 0


def test_segments_older_than_the_minutes_go_also_on_a_disk_that_is_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    segments = Segments(str(folder), ABOUT, 8, 100_000_000)
    for seq in range(5):
        segments.write([shipped(WORKER, seq)])
        now += 60
    monkeypatch.setattr("os.write", full)
    for seq in range(5, 20):
        segments.write([shipped(WORKER, seq)])
        now += 60
    assert list(folder.iterdir()) == []


def test_a_basis_is_not_put_together_again_at_once(
    folder: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that is full that would take a processor, and be for nothing."""
    now, made = 0.0, 0
    batches = Basis.batches

    def counted(*args: object) -> object:
        nonlocal made
        made += 1
        return batches(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(Basis, "batches", counted)
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        for seq in range(10):
            segments.write([shipped(SCHEDULER, seq)])
        assert made == 1
    assert segments.dropped == {"disk: No space left on device": 10}
    now += module.AGAIN_S
    segments.write([begins(1, 11)])
    assert len(list(folder.iterdir())) == 1


def test_drops_that_found_no_room_are_told_once_there_is(
    folder: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments.write(hello())
    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        segments.write([shipped(SCHEDULER, 1)])
        for file, _ in segments.files():
            os.close(file)
    assert opened(folder)[1].dropped == {}
    for file, _ in segments.files():
        os.close(file)
    assert opened(folder)[1].dropped == {"disk: No space left on device": 1}


def test_a_batch_larger_than_the_size_costs_nothing_but_itself(folder: Path) -> None:
    segments = Segments(str(folder), ABOUT, 10, 100_000)
    segments.write(hello())
    roll(segments)
    segments.write([shipped(SCHEDULER, 1)])
    before = sorted(folder.iterdir())
    segments.write([noise(1, 10_000)])

    assert sorted(folder.iterdir())[: len(before)] == before
    assert sum(segments.dropped.values()) == 1
    assert len(opened(folder)[0].workers()) == 1


@pytest.mark.parametrize(
    ("size", "nodes", "runs", "missing"),
    [
        (100_000_000, 1000, 1000, ""),
        (100_000, 20_000, 10, "stacks"),
        (100_000, 10, 20_000, "stacks and running tasks"),
    ],
)
def test_of_a_basis_over_its_share_stacks_and_then_runs_are_left_out(
    size: int, nodes: int, runs: int, missing: str, folder: Path
) -> None:
    """And the dump says so; who the workers are is known all the same."""
    segments = Segments(str(folder), ABOUT, 10, size)
    at = [(NODE, i, i - 1, os.urandom(9).hex(), "/home/me/etl.py", i) for i in range(2, nodes)]
    given = [(ASSIGN, i, i, WORKER.name, -1, os.urandom(9).hex()) for i in range(runs)]
    segments.write([*hello(), shipped(WORKER, 1, *at), shipped(SCHEDULER, 1, *given, running=runs)])
    roll(segments)
    segments.write([look(2)])
    segments.close()
    while len(list(folder.iterdir())) > 1:
        forget_first(folder)
    recording, window = opened(folder)

    assert recording.workers()["name"].tolist() == ["alice"]
    assert window.without_stacks == ("stacks" in missing)
    assert window.without_runs == ("running" in missing)
    assert (f"not all {missing or 'of it'} from before it were kept" in said(window)) == (
        missing != ""
    )
    assert recording.coverage()["flight"]["without_stacks"] == window.without_stacks


def test_places_in_stacks_beyond_those_that_are_kept_are_told(
    folder: Path, segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basis, "NODES", 2)
    segments.write([*hello(), shipped(WORKER, 1, (NODE, 2, 1, "more", "/home/me/etl.py", 5))])
    roll(segments)
    segments.write([look(2)])
    segments.close()
    forget_first(folder)
    assert opened(folder)[1].without_stacks
