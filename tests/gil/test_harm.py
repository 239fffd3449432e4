"""Whatever happens to a process, its watch or py-spy: the run goes on and nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

import holding
import stageprof
from stageprof_runtime.gil import program, watcher
from stageprof_runtime.gil.permission import spy

#: Seconds that a process told to end may take.
GRACE_S = 10

#: Two threads that want the GIL, recorded; says when py-spy is there, then waits for its input.
CONTENDED = """
import dask, os, psutil, sys, threading
sys.path.insert(0, {tests!r})
import holding, stageprof
over = threading.Event()
from stageprof_runtime.probes import stacks
def work():
    stacks.begin("worker", "x")
    while not over.is_set():
        holding.in_python(0.1)
prof = stageprof.profile({how}).start()
threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
me = psutil.Process()
while not any({there} for p in me.children(recursive=True)): over.wait(0.1)
print("ready", flush=True)
{then}
"""


def contended(then: str, how: str = "") -> subprocess.Popen[str]:
    """That program in a process of its own, once py-spy is there; `then` it goes on so."""
    tests = str(Path(holding.__file__).parent)
    there = '"--native" in p.cmdline()' if how else '"py-spy" in p.name()'
    code = CONTENDED.format(tests=tests, then=textwrap.dedent(then), how=how, there=there)
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def beside(process: subprocess.Popen[str]) -> dict[str, psutil.Process]:
    """The watch of a process, and its py-spy."""
    below = psutil.Process(process.pid).children(recursive=True)
    found = {"py-spy" if "py-spy" in p.name() else "watch": p for p in below}
    assert set(found) == {"watch", "py-spy"}
    return found


def gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=GRACE_S)[1]


def finish(process: subprocess.Popen[str]) -> str:
    """What it says until it ends."""
    out, _ = process.communicate("\n", timeout=60)
    return out


needs_spy = pytest.mark.skipif(not spy(), reason="py-spy is not installed")


@needs_spy
def test_neither_outlives_a_process_that_is_killed() -> None:
    started = contended("sys.stdin.readline()")
    found = beside(started)
    started.kill()
    finish(started)
    assert gone(list(found.values()))


@needs_spy
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)", "raise ValueError"])
def test_neither_outlives_a_process_that_ends_without_stop(end: str) -> None:
    started = contended(f"sys.stdin.readline()\n{end}")
    found = beside(started)
    finish(started)
    assert gone(list(found.values()))


@needs_spy
def test_py_spy_does_not_outlive_a_watch_that_is_killed_and_the_run_goes_on() -> None:
    started = contended(
        """
        sys.stdin.readline()
        over.set()
        for thread in threads: thread.join()
        rec = prof.stop()
        print(rec.timeline.gil.sources[0])
        """
    )
    found = beside(started)
    found["watch"].kill()
    assert gone(list(found.values()))
    assert "watch ended with status -9" in finish(started)


@needs_spy
def test_a_py_spy_that_is_killed_is_missed_in_coverage_only() -> None:
    started = contended(
        """
        sys.stdin.readline()
        threading.Event().wait(1.0)
        over.set()
        for thread in threads: thread.join()
        rec = prof.stop()
        print([label for _, _, label in rec.timeline.marks("gil holders")])
        print(rec.gil()["hold_s"].sum() > 0.5)
        """
    )
    beside(started)["py-spy"].kill()
    told, held = finish(started).splitlines()
    assert "py-spy ended" in told
    assert held == "True"


@needs_spy
def test_a_forked_child_leaves_its_parents_watch_alone() -> None:
    started = contended(
        """
        pid = os.fork()
        if pid == 0:
            prof.stop()
            os._exit(0)
        os.waitpid(pid, 0)
        print(len(me.children()), flush=True)
        sys.stdin.readline()
        prof.stop()
        print(len(me.children()))
        """
    )
    assert finish(started).split() == ["1", "0"]


# -- in this process ------------------------------------------------------------------------


def recorded(jobs: list[Callable[[], Any]]) -> stageprof.Recording:
    tasks = [dask.delayed(job, pure=False)() for job in jobs]
    with stageprof.profile() as prof:
        dask.compute(*tasks, scheduler="threads", num_workers=len(jobs))
    return prof.recording


def two() -> list[Callable[[], Any]]:
    """Two threads that want the GIL."""
    return [lambda: holding.in_python(1.5) and None] * 2


def best_of(recording: stageprof.Recording) -> Any:
    """What of the tasks held the GIL most."""
    frame = recording.gil()
    return frame[frame["prefix"] != ""].iloc[0]


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("exit 1", "status 256"),
        ('echo "Permission denied" >&2; exit 1', "Permission denied"),
        ('echo Sampling process; echo \'[{"ph": "B"\' >"${10}"; exit 0', "py-spy ended"),
        ("echo Sampling process; exec sleep 100", "py-spy ended"),
        ("exec sleep 100", "py-spy ended"),
    ],
    ids=["fails", "refused", "broken trace", "deaf", "never attaches"],
)
def test_a_py_spy_that_does_not_work_is_said(
    does: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "spy", lambda: script(tmp_path / "py-spy", does))
    recording = recorded(two())
    said = [label for _, _, label in recording.timeline.marks("gil holders")]
    assert len(said) == 1
    assert told in said[0]
    assert best_of(recording)["source"] == "looks"


def test_without_py_spy_the_lines_come_from_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "spy", lambda: "")
    best = best_of(recorded(two()))
    assert (best["function"], best["source"]) == ("in_python", "looks")


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can become somebody else"
)
def test_a_watch_that_may_not_look_leaves_it_to_a_ticker(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def as_nobody(*how: Any) -> list[str]:
        words = program.command(*how)
        return [*nobody, shutil.which("python3", path="/usr/bin") or words[0], *words[1:]]

    monkeypatch.setattr(watcher, "command", as_nobody)
    recording = recorded([lambda: holding.in_python(3) and None])
    (source,) = recording.timeline.gil.sources.values()
    assert source.startswith("ticker: ")
    samples, task = recording.samples(), recording.tasks().iloc[0]
    inside = samples["t_s"].between(task["start_s"] + 1, task["stop_s"])
    read = samples[(samples["name"] == "gil.contention") & inside]
    assert read["value"].mean() == pytest.approx(1, abs=0.15)
    assert recording.gil().empty


def test_a_program_that_is_its_own_python_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As PyInstaller makes them: `sys.executable` is the program, whatever words it is given."""
    frozen, started = tmp_path / "etl", tmp_path / "started"
    frozen.write_text(f"#!/bin/sh\ntouch {started}\n")
    frozen.chmod(0o700)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(frozen))
    (source,) = recorded([lambda: holding.waiting(0.3)]).timeline.gil.sources.values()
    assert source.startswith("ticker: this program")
    assert not started.exists()


def test_a_program_without_a_gil_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    (source,) = recorded([lambda: holding.waiting(0.3)]).timeline.gil.sources.values()
    assert "runs without a GIL" in source


def test_64_threads_are_watched() -> None:
    all_there = threading.Barrier(64)

    def job() -> None:
        all_there.wait()
        holding.in_c(0.005, 10)

    recording = recorded([job] * 64)
    tasks = recording.tasks()
    assert tasks["thread"].nunique() == 64
    assert tasks["gil_hold_s"].sum() == pytest.approx(64 * 0.05, rel=0.2)
    assert tasks["gil_wait_s"].sum() > 5 * tasks["gil_hold_s"].sum()


@needs_spy
def test_a_stopped_process_is_watched_when_it_goes_on() -> None:
    started = contended(
        """
        sys.stdin.readline()
        over.set()
        for thread in threads: thread.join()
        print(prof.stop().gil()["hold_s"].sum() > 0.3)
        """
    )
    found = beside(started)
    started.send_signal(signal.SIGSTOP)
    assert found["watch"].is_running()
    started.send_signal(signal.SIGCONT)
    assert finish(started) == "True\n"
    assert gone(list(found.values()))


#: A child that lives longer than the region holds whatever it was forked with.
FORKED = """
import os, sys, stageprof
from stageprof_runtime.probes import gil
with stageprof.profile() as prof:
    (watcher,) = gil.watching
    watch = watcher._child
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(w)
        os.read(r, 1)  # until the parent has ended, or lets go
        os._exit(0)
    os.close(r)
print(watch.returncode, [label for _, _, label in prof.recording.timeline.marks("gil source")])
os.close(w)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no watch elsewhere")
def test_a_forked_child_does_not_keep_the_watch_from_ending() -> None:
    line = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0 ['watch']"


#: In a group of its own, as a terminal has it: what interrupts all of the group goes on.
INTERRUPTED = """
import os, signal, time, stageprof
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass
with stageprof.profile() as prof:
    spin(0.5)
    try:
        os.killpg(0, signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        spin(1)
recording = prof.recording
print(*recording.timeline.gil.sources.values(), recording.gil()["hold_s"].sum() > 0.7)
"""


def test_a_ctrl_c_that_the_program_takes_leaves_the_watch() -> None:
    """A terminal, and "interrupt kernel" of a notebook, interrupt all processes of a group."""
    line = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=60, check=False, start_new_session=True
    )
    assert (done.stdout.split(), done.returncode) == (["watch", "True"], 0), done.stderr
