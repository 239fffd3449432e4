"""Forks in the region: the child has no session, the parent keeps its own."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import dask
import pytest
from dask import delayed

import stageprof

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

#: The child computes, leaves the block as the parent does, and forks again.
FORKS = """
import faulthandler, os, sys, dask, stageprof, stageprof_runtime
from stageprof_runtime.process import installed
faulthandler.dump_traceback_later(20, exit=True)
dask.config.set(scheduler=sys.argv[2])
def run(n):
    return dask.compute(*[dask.delayed(lambda i: i + 1)(i) for i in range(n)])
prof = stageprof.profile(sys.argv[1])
with prof:
    run(5)
    child = os.fork()
    if child == 0:
        assert installed() == [], installed()
        dask.config.set(scheduler="sync")  # Dask's own pool of threads does not survive a fork
    assert run(50) == tuple(range(1, 51))
if child == 0:
    with stageprof.profile() as own:
        run(3)
    assert len(own.recording.tasks()) == 3
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert len(prof.recording.tasks()) == 55, len(prof.recording.tasks())
assert prof.recording.coverage()["complete"]
assert len(stageprof.open(sys.argv[1]).tasks()) == 55
"""


@pytest.mark.smoke
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_a_forked_child_leaves_the_parents_recording_alone(scheduler: str, tmp_path: Path) -> None:
    line = [sys.executable, "-c", FORKS, str(tmp_path / "r.stageprof"), scheduler]
    done = subprocess.run(line, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == 0, done.stderr


#: The child leaves the block while a thread of the parent's was writing.
WRITES = """
import faulthandler, os, sys, stageprof
faulthandler.dump_traceback_later(20, exit=True)
prof = stageprof.profile(sys.argv[1] or None)
with prof:
    with prof._collector._writer._lock if sys.argv[1] else prof._collector.lock:
        child = os.fork()
if child == 0:
    assert not prof.recording.coverage()["complete"]
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert prof.recording.coverage()["complete"]
"""


@pytest.mark.parametrize("name", ["r.stageprof", ""])
def test_a_child_that_was_forked_while_something_was_written_goes_on(
    name: str, tmp_path: Path
) -> None:
    """It waited for the parent's thread to let go of the file, for ever."""
    line = [sys.executable, "-c", WRITES, str(tmp_path / name) if name else ""]
    done = subprocess.run(line, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == 0, done.stderr


def double(x: int) -> int:
    return 2 * x


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_processes_scheduler_neither_hangs_nor_loses_a_task(method: str) -> None:
    with (
        dask.config.set(
            {"scheduler": "processes", "num_workers": 2, "multiprocessing.context": method}
        ),
        stageprof.profile() as prof,
    ):
        results = dask.compute(*[delayed(double)(i) for i in range(20)])
    assert results == tuple(range(0, 40, 2))
    assert len(prof.recording.tasks()) == 20


def _child(queue: multiprocessing.Queue[list[str]]) -> None:
    import remains

    queue.put(remains.of_process())


def test_a_process_of_the_users_own_has_nothing_of_the_session() -> None:
    context = multiprocessing.get_context("fork")
    with dask.config.set(scheduler="threads"), stageprof.profile():
        delayed(double)(1).compute()
        queue: multiprocessing.Queue[list[str]] = context.Queue()
        process = context.Process(target=_child, args=(queue,))
        process.start()
        left = queue.get(timeout=20)
        process.join(20)
        queue.close()
        queue.join_thread()
    assert process.exitcode == 0
    assert left == []
