"""A recorder that is killed leaves a recording that opens, with all that was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import clusters
import stageprof
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import read_frames
from stageprof_collectors.summary import incomplete

#: Forks a recorder for each path that it reads: imports are made once. A recorder computes for
#: ever and says for each batch, in one byte, that it is in the file.
NEST = """
import os, signal, sys
import dask, stageprof
from stageprof_collectors.storage.file import Writer
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
write = Writer.write

def acknowledged(self, *batches):
    before, done = self.batches, write(self, *batches)
    os.write(1, b"." * (self.batches - before))
    return done

def record(path):
    Writer.write = acknowledged
    inc = lambda x: x + 1
    graph = {("inc", i): (inc, i) for i in range(2_000)}
    with stageprof.profile(path, gil=False):
        while True:
            dask.get(graph, list(graph))

for line in sys.stdin:
    child = os.fork()
    if not child:
        os.write(1, b"%d\\n" % os.getpid())
        record(line.strip())
"""


@pytest.fixture(scope="module")
def nest() -> Iterator[subprocess.Popen[bytes]]:
    line = [sys.executable, "-W", "ignore", "-c", NEST]
    with subprocess.Popen(
        line, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        clusters.shared.add(process.pid)
        yield process
        clusters.shared.discard(process.pid)
        assert process.stdin is not None
        process.stdin.close()


def acknowledged_until_killed(nest: subprocess.Popen[bytes], path: Path, seconds: float) -> int:
    """Batches that a recorder said were in its file, which lived for so long after the first."""
    assert nest.stdin is not None
    assert nest.stdout is not None
    nest.stdin.write(f"{path}\n".encode())
    child = int(nest.stdout.readline())
    said = len(os.read(nest.stdout.fileno(), 1))
    time.sleep(seconds)  # that it is killed at any time is what is tested
    os.kill(child, signal.SIGKILL)
    clusters.soon(lambda: not psutil.pid_exists(child))
    os.set_blocking(nest.stdout.fileno(), False)
    try:
        while part := os.read(nest.stdout.fileno(), 1 << 16):
            said += len(part)
    except BlockingIOError:
        os.set_blocking(nest.stdout.fileno(), True)
    return said


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(5, 50))]
)
def test_what_was_acknowledged_is_there_and_the_rest_is_said_to_be_missing(
    seed: int, nest: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """F5: SIGKILL of the recorder at random: the file opens, no acknowledged frame is lost."""
    path = tmp_path / "killed.stageprof"
    longest = 0.6 if seed < 5 else 2.0
    said = acknowledged_until_killed(nest, path, random.Random(seed).uniform(0, longest))
    frames = read_frames(path)
    batches = [b for f in frames if f.type == frame.BATCH for b in frame.split(f.raw)]
    recording = stageprof.open(path)

    assert said > 0
    assert len(batches) >= said
    assert not recording.complete
    assert recording.coverage()["events"] > 0
    assert incomplete(recording).startswith("recording incomplete: ")
