"""Sessions beside and within one another, forks and threads: no deadlock, and nothing is mixed up.

Each program runs in a process of its own, which says where its threads are and ends if it has not
come to its end in time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: What all programs begin with.
BEGIN = """
import faulthandler, os, signal, sys, threading, time
import dask, stageprof
from dask import delayed
from stageprof_runtime.errors import UsageError
from stageprof_runtime.process import installed

faulthandler.dump_traceback_later(10, exit=True)
folder = sys.argv[1]
dask.config.set(scheduler="threads", num_workers=2)

def inc(x):
    return x + 1

def nap(x, seconds=0.02):
    time.sleep(seconds)
    return x + 1

def run(name, n, function=inc):
    tasks = [delayed(function)(i, dask_key_name=f"{name}-{i}") for i in range(n)]
    assert dask.compute(*tasks) == tuple(range(1, n + 1))

def count(recording, name):
    return sum(key.startswith(f"{name}-") for key in recording.tasks()["key"])

def in_threads(*functions):
    errors = []
    def caught(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=caught, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error

def sound(recording):
    coverage = recording.coverage()
    assert coverage["complete"] and coverage["batches_lost"] == 0 and coverage["problems"] == []
    assert abs(recording.stages()["wall_s"].sum() - recording.wall) < 1e-3
"""

PROGRAMS = {
    # The account of each is that of its own thread, though both see what the process runs.
    "two threads, each with its session": """
regions = {}
gate = threading.Barrier(2)

def busy():
    with stageprof.profile(f"{folder}/busy.stageprof") as prof:
        gate.wait()
        run("busy", 40, nap)
        gate.wait()
    regions["busy"] = prof.recording

def idle():
    with stageprof.profile(f"{folder}/idle.stageprof") as prof:
        gate.wait()
        gate.wait()
    regions["idle"] = prof.recording

in_threads(busy, idle)
for recording in regions.values():
    sound(recording)
share = {name: r.stages()["wall_s"] / r.wall for name, r in regions.items()}
assert share["busy"]["execution"] > 0.5, share["busy"]
assert share["idle"]["outside"] > 0.95, share["idle"]
assert count(regions["busy"], "busy") == 40
""",
    "one after the other, and overlapping in any order": """
first, second, third = (stageprof.profile() for _ in range(3))
first.start()
run("a", 3)
second.start()
run("b", 4)
first.stop()
run("c", 5)
third.start()
run("d", 6)
second.stop()
run("e", 7)
third.stop()
run("f", 8)
assert installed() == []
seen = [{n: count(p.recording, n) for n in "abcdef"} for p in (first, second, third)]
assert seen == [
    dict(a=3, b=4, c=0, d=0, e=0, f=0),
    dict(a=0, b=4, c=5, d=6, e=0, f=0),
    dict(a=0, b=0, c=0, d=6, e=7, f=0),
], seen
for prof in (first, second, third):
    sound(prof.recording)
""",
    "one within the other, also when the inner one fails": """
class Planted(Exception):
    pass

with stageprof.profile() as outer:
    run("a", 3)
    try:
        with stageprof.profile() as inner:
            run("b", 4)
            raise Planted
    except Planted:
        pass
    run("c", 5)
assert installed() == []
assert [count(inner.recording, n) for n in "abc"] == [0, 4, 0]
assert [count(outer.recording, n) for n in "abc"] == [3, 4, 5]
sound(inner.recording)
sound(outer.recording)
""",
    "started twice, stopped twice": """
prof = stageprof.profile()
prof.start()
for wrong in (prof.start, prof.__enter__):
    try:
        wrong()
    except UsageError as error:
        assert "twice" in str(error)
    else:
        raise AssertionError
run("a", 3)
sound(prof.stop())
for _ in range(2):
    try:
        prof.stop()
    except UsageError as error:
        assert "without start()" in str(error)
    else:
        raise AssertionError
assert count(prof.recording, "a") == 3
with prof:  # and again, as a new one
    run("b", 4)
assert [count(prof.recording, n) for n in "ab"] == [0, 4]
assert installed() == []
""",
    "many threads that start and stop": """
def often(name):
    def profiled():
        for i in range(5):
            with stageprof.profile(gil=False) as prof:
                run(f"{name}{i}", 2)
            sound(prof.recording)
            assert count(prof.recording, f"{name}{i}") == 2
    return profiled

dask.config.set(scheduler="sync")
in_threads(*map(often, "abcd"))
assert installed() == []
""",
    # The other thread's graph is made before: a lock of Dask's that it held would stay taken.
    "forks while two sessions and other threads are busy": """
begun = threading.Event()

def other(x):
    begun.set()
    return nap(x)

def forks():
    thread = threading.Thread(target=run, args=("other", 40, other))
    thread.start()
    assert begun.wait(10)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            dask.config.set(scheduler="sync")  # Dask's own pool does not survive a fork
            assert installed() == [], installed()
            with stageprof.profile(gil=False) as own:
                run("child", 3)
            assert [count(own.recording, n) for n in ("child", "a", "b")] == [3, 0, 0]
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    thread.join()

with stageprof.profile(f"{folder}/outer.stageprof") as outer:
    run("a", 3)
    with stageprof.profile(f"{folder}/inner.stageprof") as inner:
        forks()
        run("b", 4)
assert [count(outer.recording, n) for n in ("a", "b", "child")] == [3, 4, 0]
assert [count(inner.recording, n) for n in ("a", "b", "child")] == [0, 4, 0]
sound(outer.recording)
sound(inner.recording)
""",
    "two that write to the same file": """
path = f"{folder}/same.stageprof"
with stageprof.profile(path) as first:
    run("a", 3)
    try:
        with stageprof.profile(path):
            run("b", 4)
    except stageprof.StageprofError as error:
        assert "same.stageprof" in str(error)
    run("c", 5)
sound(first.recording)
assert [count(first.recording, n) for n in "ac"] == [3, 5]
with stageprof.profile(path) as again:  # which is free again
    run("d", 6)
sound(again.recording)
""",
    "whose file somebody takes away or overwrites": """
for spoil in (os.unlink, lambda path: open(path, "w").write("mine")):
    path = f"{folder}/spoilt.stageprof"
    with stageprof.profile(path) as prof:
        run("a", 3)
        spoil(path)
        run("b", 4)
    reason = prof.recording.coverage()["incomplete_reason"]
    assert "cannot be read" in reason, reason
    assert "incomplete" in str(prof.recording)
    prof.recording.stages(), prof.recording.findings()
""",
}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("what", PROGRAMS)
def test_sessions_neither_wait_for_one_another_nor_mix(what: str, tmp_path: Path) -> None:
    """F11: forks, threads, sessions at once and nested, double start: no deadlock in 10 s."""
    line = [sys.executable, "-W", "ignore", "-c", BEGIN + PROGRAMS[what], str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
