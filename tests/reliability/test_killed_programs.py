"""A program that is killed while it waits for its cluster: its time is that of the tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dask
import psutil
import pytest

import clusters
import stageprof
from stageprof_collectors.storage.store import Store
from stageprof_runtime.errors import StageprofError
from stageprof_runtime.underway import WAITS

pytestmark = pytest.mark.cluster

#: Computes for half a minute on a cluster, and is recorded.
PROGRAM = """
import sys, time
import dask, stageprof
from distributed import Client

def nap(i):
    time.sleep(0.1)

if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        with stageprof.profile(sys.argv[1], gil=False):
            dask.compute(*[dask.delayed(nap)(i) for i in range(500)])
"""
#: Tasks that a recording has when its program is killed: of some seconds.
ENOUGH = 60


def finished(path: Path) -> int:
    """Tasks that ended, as a file says that is being written."""
    try:
        return Store.open(path).rows("finish") if path.exists() else 0
    except StageprofError:  # not even its header is there yet
        return 0


@pytest.fixture(params=[signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The recording of a program that a signal ended."""
    path = tmp_path / "killed.stageprof"
    (tmp_path / "program.py").write_text(PROGRAM)
    line = [sys.executable, "-W", "ignore", str(tmp_path / "program.py"), str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL) as program:
        others: list[psutil.Process] = []
        try:
            clusters.soon(lambda: finished(path) >= ENOUGH, 60)
            others = psutil.Process(program.pid).children(recursive=True)
            program.send_signal(request.param)
            assert program.wait(30) == -request.param  # whatever we do, it ends by its signal
        finally:
            program.kill()
        clusters.soon(lambda: not any(map(alive, others)))
    return path


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def accounted(recording: stageprof.Recording) -> None:
    """Almost all of the time is the tasks', and no verdict says more than is known."""
    share = recording.stages()["share"]
    assert not recording.complete
    assert share["outside"] < 0.05
    assert share["execution"] > 0.6
    assert share.sum() == pytest.approx(1.0)
    text = str(recording)
    assert "recording incomplete" in text
    assert "Nothing to fix" not in text


def test_time_of_a_killed_program_is_that_of_its_tasks(killed: Path) -> None:
    recording = stageprof.open(killed)
    accounted(recording)
    [(began, _, label)] = recording.timeline.marks(WAITS)
    assert label.endswith("_gather")
    assert began > recording.timeline.region.start


def test_file_that_is_cut_in_half_is_accounted_the_same(tmp_path: Path) -> None:
    def nap(_: int) -> None:  # by value: a worker would import this file first
        time.sleep(0.1)

    whole, cut = tmp_path / "whole.stageprof", tmp_path / "cut.stageprof"
    with clusters.local() as client, stageprof.profile(whole, gil=False):
        client.compute([dask.delayed(nap)(i) for i in range(ENOUGH)], sync=True)
    share = stageprof.open(whole).stages()["share"]
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    half = stageprof.open(cut)
    accounted(half)
    assert half.stages()["share"]["execution"] == pytest.approx(share["execution"], abs=0.15)
