"""A disk that fills up ends the recording, not the run; what was written is readable."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import stageprof
from preload.shipped import SCHEDULER, opened, shipped
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import read_frames
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, Place
from stageprof_runtime.flight.segments import Segments

#: Bytes of the small disk: sixteen pages.
ROOM = 65_536

#: Computes until the recording has stopped, and a few times more.
PROGRAM = """
import sys
import dask, stageprof
def neg(x): return -x
graph = {f"neg-{i:032x}": (neg, i) for i in range(1_000)}
right, after = [-i for i in range(1_000)], 0
with stageprof.profile(sys.argv[1], gil=False) as prof:
    while after < 3:
        after += bool(prof._collector._writer.failed)
        assert list(dask.get(graph, list(graph))) == right
print("right", prof.recording.complete)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen pages."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NO FULL DISK TESTED: none can be made here ({error})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_run_whose_disk_fills_up_is_right_and_says_so_once(small_disk: Path) -> None:
    """F6: the results are right, all whole frames are readable, and there is one message."""
    path = small_disk / "full.stageprof"
    line = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    frames = read_frames(path)
    list(frames)
    recording = stageprof.open(path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "right False\n"
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"stageprof: recording to {path} stopped: No space left")
    assert frames.offset == path.stat().st_size
    assert "recording incomplete: " in str(recording)


@pytest.fixture
def begun(tmp_path: Path) -> Collector:
    """A collector that has written what it was given."""
    path = tmp_path / "a.stageprof"
    collector = Collector(path)
    collector.take(pack(Place("client", "here", 1, "client", 0), 0, 1, [(MARK, 1, "a", "")]))
    collector._finish()  # as `close` does first, so that what follows is its second half
    return collector


@pytest.mark.parametrize("how", ["no room for the end", "told by close"])
def test_a_disk_that_is_full_at_the_end_is_said_once_too(
    how: str,
    begun: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F6: there is no room for the last frame; or a network's disk says so only when it closes."""
    assert begun.path is not None
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if how == "told by close":
        monkeypatch.setattr("stageprof_collectors.storage.file.os.close", _refuse)
    else:
        size = Path(begun.path).stat().st_size + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        recording = begun.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        monkeypatch.undo()

    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"stageprof: recording to {begun.path} stopped: ")
    assert recording.coverage()["events"] == 1
    assert recording.complete == (how == "told by close")  # as far as can be seen here


def _refuse(fd: int) -> None:
    os.closerange(fd, fd + 1)
    raise OSError(errno.EDQUOT, "Disk quota exceeded")


def test_a_flight_recorder_whose_disk_is_full_goes_on_and_counts(small_disk: Path) -> None:
    """F6: what could be written is a recording; what could not is told with it."""
    folder = small_disk / "flight"
    folder.mkdir()
    segments = Segments(str(folder), {"minutes": 10, "size": 10**9}, 10, 10**9)
    for seq in count(1):
        noise = os.urandom(3_000).hex()
        segments.write([shipped(SCHEDULER, seq, (MARK, seq, "noise", noise))])
        if segments.dropped.total() == 3:
            break
    segments.close()
    recording, _ = opened_elsewhere(folder)

    assert list(segments.dropped) == ["disk: No space left on device"]
    assert recording.store.origins[0].last_seq == seq - 3


def opened_elsewhere(folder: Path) -> tuple[stageprof.Recording, object]:
    """Segments of a full disk, made into a recording beside it."""
    beside = folder.parent.parent / "flight"
    beside.mkdir()
    for path in folder.iterdir():
        (beside / path.name).write_bytes(path.read_bytes())
    return opened(beside)
