"""What py-spy says of C frames is read rightly; where it says nothing, coverage tells why."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

import holding
import stageprof
from gil.test_harm import GRACE_S, contended, finish, needs_spy
from stageprof_runtime.errors import UsageError
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.gil import program, unwinding, unwound, watcher
from stageprof_runtime.gil.state import NoGil
from stageprof_runtime.gil.unwinding import NAMELESS, Trace, events
from stageprof_runtime.tree import described

OURS = ("_run.<locals>.timed", "/x/stageprof_runtime/probes/execution.py", 60)
WORK = ("work", "/u/etl.py", 7)
IDLE = ("wait", "/lib/python3.11/threading.py", 320)
DEFLATE = ("deflate", "/usr/lib/libz.so.1.2", 0)
Frame = tuple[str, str, int]


class Spied:
    """A trace as py-spy writes one: of a stack only what has changed since the look before."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._before: dict[int, list[Frame]] = {}

    def look(self, us: int, thread: int, *stack: Frame) -> None:
        """Where a thread was, from the outermost frame inward."""
        before, now = self._before.get(thread, []), list(stack)
        same = 0
        while same < min(len(before), len(now)) and before[same] == now[same]:
            same += 1
        for frame in reversed(before[same:]):
            self._event("E", us, thread, frame)
        for frame in now[same:]:
            self._event("B", us, thread, frame)
        self._before[thread] = now

    def end(self, us: int) -> list[dict[str, Any]]:
        """All that is open ends."""
        for thread in list(self._before):
            self.look(us, thread)
        return self.events

    def _event(self, phase: str, us: int, thread: int, frame: Frame) -> None:
        name, file, line = frame
        args = {"filename": file, "line": line}
        event = {"ph": phase, "ts": us, "tid": thread, "pid": 1, "name": name, "cat": "py-spy"}
        self.events.append({"args": args, **event})


def told(trace: list[dict[str, Any]], zero: int = 0) -> dict[str, Any]:
    read = Trace(zero)
    for event in trace:
        read.add(event)
    said: dict[str, Any] = json.loads(json.dumps(read.told()))
    return said


def stacks(said: dict[str, Any]) -> list[tuple[int, int, int, list[Frame]]]:
    """Start, stop, thread and stack of each row, in order."""
    found: list[tuple[int, int, int, list[Frame]]] = []
    for start, stop, thread, node in sorted(said["rows"]):
        stack = [(f[0], f[1], f[2]) for f in reversed(unwound._stack(said, node))]
        found.append((start, stop, thread, stack))
    return found


def test_each_look_stands_until_the_next() -> None:
    """Also where a thread sleeps, for it is looked at all the same."""
    spied = Spied()
    spied.look(100, 5, OURS, WORK, DEFLATE)
    spied.look(200, 5, OURS, WORK, DEFLATE)
    spied.look(300, 5, OURS, WORK)
    spied.look(400, 5, IDLE)
    spied.look(900, 5, OURS, WORK)
    zlib = ("deflate", "libz.so.1.2", 0)
    assert stacks(told(spied.end(1000), zero=10_000)) == [
        (110_000, 310_000, 5, [OURS, WORK, zlib]),
        (310_000, 410_000, 5, [OURS, WORK]),
        (910_000, 1_010_000, 5, [OURS, WORK]),
    ]


def test_threads_without_tasks_are_left_out_with_all_that_is_theirs() -> None:
    spied = Spied()
    spied.look(100, 5, IDLE, DEFLATE)
    spied.look(100, 6, OURS, WORK)
    said = told(spied.end(200))
    assert [row[2] for row in said["rows"]] == [6]
    assert [tuple(frame) for frame in said["frames"]] == [OURS, WORK]


def test_frames_without_a_symbol_are_one_for_each_library() -> None:
    """Addresses differ from process to process, and within a function."""
    inner = [(f"0x7f00{i}", "/usr/lib/libz.so.1.2", 0) for i in range(3)]
    spied = Spied()
    spied.look(100, 5, OURS, WORK, DEFLATE, *inner)
    spied.look(200, 5, OURS, WORK, DEFLATE, inner[2], ("0x7f99", "/usr/lib/libc.so.6", 0))
    names = [[f[:2] for f in stack[2:]] for *_, stack in stacks(told(spied.end(300)))]
    zlib = [("deflate", "libz.so.1.2"), (NAMELESS, "libz.so.1.2")]
    assert names == [zlib, [*zlib, (NAMELESS, "libc.so.6")]]


@pytest.mark.parametrize(
    ("file", "line", "c"),
    [
        ("/u/etl.py", 3, False),
        ("/tmp/ipykernel_1/77.py", 3, False),
        ("<__array_function__ internals>", 5, False),
        ("/usr/bin/myscript", 12, False),
        ("/usr/lib/libz.so.1.2.13", 0, True),
        ("/build/Modules/zlibmodule.c", 374, True),
        ("/build/clinic/zlibmodule.c.h", 64, True),
        ("?", 0, True),
    ],
)
def test_frames_of_c_are_told_from_those_of_python(file: str, line: int, *, c: bool) -> None:
    assert (unwinding.described("f", file, line)[2] == 0) is c


def test_threads_that_py_spy_numbers_anew_keep_their_identifiers() -> None:
    """As releases after 0.4 do, which say so in a name of the thread."""
    spied = Spied()
    spied.look(100, 0, ("thread (12): worker", "", 0), OURS, WORK)
    name = {"args": {"filename": "", "line": None, "name": "140001: worker"}, "ph": "M"}
    meta = {**name, "ts": 0, "tid": 0, "pid": 1, "name": "thread_name", "cat": "py-spy"}
    ((*_, thread, stack),) = stacks(told([meta, *spied.end(200)]))
    assert (thread, stack) == (140001, [OURS, WORK])


def test_a_trace_that_was_cut_is_read_as_far_as_it_goes() -> None:
    whole = json.dumps([{"a": i} for i in range(100)]).encode()
    assert [e["a"] for e in events(whole)] == list(range(100))
    middle = whole.index(b'{"a": 50}') + 4
    assert [e["a"] for e in events(whole[:middle])] == list(range(50))
    assert list(events(b"[]")) == []


@pytest.mark.parametrize("data", [b"", b"x", b"{}", b"[1]", b'[{"ph": "B"', b"\xff\xff"])
def test_what_is_no_trace_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="no trace"):
        list(events(data))


def test_huge_traces_are_cut_and_what_is_cut_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwinding, "NODES", 50)
    monkeypatch.setattr(unwinding, "LOOKS", 20)
    spied = Spied()
    for i in range(100):
        deep = [("f" * 1000, f"/u/{'x' * 1000}{i}.py", 1 + k) for k in range(30)]
        spied.look(100 * (i + 1), 5, OURS, *deep)
    said = told(spied.end(20_000))
    assert len(said["nodes"]) <= 50
    assert len(said["rows"]) == 20
    assert said["cut"] >= 80
    assert all(len(name) <= 200 and len(file) <= 500 for name, file, _ in said["frames"])


# -- in the process's own words -------------------------------------------------------------------


def outermost() -> dict[str, Any]:
    spied = Spied()
    execute = ("execute_task", "/x/site-packages/dask/local.py", 200)
    spied.look(100, 5, IDLE, OURS, execute, WORK, DEFLATE)
    return told(spied.end(200))


def test_a_stack_begins_with_the_tasks_function() -> None:
    ((stack, looks),) = unwound.stacks_of(outermost())
    zlib = ["deflate", "libz.so.1.2", 0]
    assert [described(spot) for spot in stack] == [[*WORK], zlib]
    assert looks == [(100_000, 200_000, 5)]


def test_a_function_of_a_library_has_one_line_whichever_runs() -> None:
    spied = Spied()
    for at, line in ((100, 400), (200, 500)):
        spied.look(at, 5, OURS, WORK, ("dumps", "<frozen json>", line))
    found = [stack for stack, _ in unwound.stacks_of(told(spied.end(300)))]
    assert found[0] == found[1]


# -- who is asked ---------------------------------------------------------------------------------


def recorded(*, native: bool = True, seconds: float = 1.5) -> stageprof.Recording:
    tasks = [dask.delayed(holding.in_numpy, pure=False)(seconds) for _ in range(2)]
    with stageprof.profile(native=native) as prof:
        dask.compute(*tasks, scheduler="threads", num_workers=2)
    return prof.recording


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Has a script run in place of py-spy; gives the file that has its words."""

    def make(text: str) -> Path:
        path, words = tmp_path / "py-spy", tmp_path / "words"
        path.write_text(f'#!/bin/sh\necho "$@" >> {words}\n{text}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(program, "spy", lambda: str(path))
        return words

    return make


def test_py_spy_is_asked_for_c_frames_only_where_they_are_wanted(
    instead: Callable[[str], Path],
) -> None:
    words = instead("exit 1")
    recorded(native=False)
    assert not words.exists() or "--native" not in words.read_text()
    recorded()
    (line,) = [x for x in words.read_text().splitlines() if "--native" in x]
    assert {"--threads", "--idle", "chrometrace"} < set(line.split())
    assert not {"--gil", "--nonblocking"} & set(line.split())


PYTHON_ONLY = json.dumps(
    [
        {"ph": phase, "ts": ts, "tid": 1, "name": OURS[0], "args": {"filename": OURS[1], "line": 3}}
        for phase, ts in (("B", 10), ("E", 20))
    ]
)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ('echo "Permission denied" >&2; exit 1', "status 256: Permission denied"),
        (f"echo Sampling process; echo '{PYTHON_ONLY}' > ${{10}}", "no C frame here"),
        ("echo Sampling process; trap '' INT; exec sleep 100", "py-spy ended with status 9"),
        ("exec sleep 100", "tasks were over before py-spy's first look"),
    ],
    ids=["refused", "built without", "deaf", "slow"],
)
def test_why_there_are_no_c_frames_is_said_and_those_of_python_remain(
    does: str, why: str, instead: Callable[[str], Path]
) -> None:
    instead(does)
    recording = recorded()
    coverage = recording.coverage()
    (said,) = coverage["disabled"]
    assert said.startswith("native.install: ")
    assert why in said
    assert coverage["unmeasured"] == ["C frames of tasks"]
    assert recording.flame(prefix="in_numpy").seconds > 2


def test_without_py_spy_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "spy", lambda: "")
    recording = recorded()
    assert recording.coverage()["disabled"] == ["native.install: py-spy is not installed"]
    assert "native.install (py-spy is not installed)" in " ".join(str(recording).split())
    assert recorded(native=False).coverage()["disabled"] == []


def test_where_nobody_may_look_from_outside_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Any:
        raise NoGil("memory of a process is read on 64-bit Linux only")

    monkeypatch.setattr(watcher, "find", refused)
    (said,) = recorded().coverage()["disabled"]
    assert said == "native.install: memory of a process is read on 64-bit Linux only"


def test_c_frames_need_the_watch() -> None:
    with pytest.raises(UsageError, match="leave gil=False"):
        stageprof.profile(gil=False, native=True)


def test_what_a_spell_saw_is_told_to_each_ring_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []

    class Emit:
        def native(self, *what: Any) -> None:
            heard.append(what)

        def row(self, _: str, row: Any) -> None:
            heard.append(row)

    monkeypatch.setattr(sys, "platform", "linux")
    made: Any = object.__new__(watcher.Watcher)
    made._emit = Emit()
    made._words(outermost() | {"cut": 3})
    (stack, looks), sample = heard
    assert (len(stack), len(looks)) == (2, 1)
    assert (sample[0], *sample[2:]) == (SAMPLE, "stacks.cut", 3.0)


def test_a_recording_that_begins_later_is_told_why_it_has_none(
    instead: Callable[[str], Path],
) -> None:
    instead('echo "Permission denied" >&2; exit 1')
    with stageprof.profile(native=True) as prof:
        dask.compute(dask.delayed(holding.in_numpy)(1.5), scheduler="threads", num_workers=2)
        with stageprof.profile(native=True) as later:
            pass
    (why,) = later.recording.coverage()["disabled"]
    assert why == prof.recording.coverage()["disabled"][0]


def test_a_trace_that_is_too_long_is_counted_as_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    spied = Spied()
    for at in range(100, 1000, 100):
        spied.look(at, 5, OURS, WORK, *[DEFLATE] * (at % 200 // 100))
    data = json.dumps(spied.end(1000)).encode()
    whole: Any = unwinding.Unwinder("py-spy", 1, 20)._seen(data)
    assert whole["cut"] == 0
    monkeypatch.setattr(unwinding.Unwinder, "largest", len(data) // 2)
    cut: Any = unwinding.Unwinder("py-spy", 1, 20)._seen(data[: len(data) // 2])
    assert cut["cut"] == 1
    assert 0 < len(cut["rows"]) < len(whole["rows"])


def unwinders(pid: int) -> list[psutil.Process]:
    """What looks at C frames of a process."""
    below = psutil.Process(pid).children(recursive=True)
    return [p for p in below if "--native" in p.cmdline()]


@needs_spy
def test_a_recording_within_another_has_its_c_frames_and_leaves_no_py_spy() -> None:
    with stageprof.profile() as outer:
        inner = recorded()
        late: list[str] = []
        if not inner.store.rows("native"):  # on a busy machine py-spy begins late, which is said
            late = inner.coverage()["disabled"]
            inner = recorded(seconds=6)
        assert unwinders(os.getpid()) == []
        again = recorded(native=False)
    if any("Permission denied" in why for why in inner.coverage()["disabled"]):
        pytest.skip("py-spy may not stop a process here")
    assert inner.store.rows("native") > 0
    assert again.store.rows("native") == 0
    assert outer.recording.coverage()["disabled"] == late


@needs_spy
def test_nothing_outlives_a_process_that_is_killed() -> None:
    started = contended("sys.stdin.readline()", "native=True")
    below = psutil.Process(started.pid).children(recursive=True)
    assert unwinders(started.pid)
    started.kill()
    finish(started)
    assert not psutil.wait_procs(below, timeout=GRACE_S)[1]


@needs_spy
def test_py_spy_does_not_outlive_a_watch_that_is_killed_and_nobody_stays_stopped() -> None:
    started = contended(
        """
        sys.stdin.readline()
        over.set()
        for thread in threads: thread.join()
        rec = prof.stop()
        print(rec.coverage()["disabled"])
        """,
        "native=True",
    )
    spies = unwinders(started.pid)
    (parent,) = {spy.ppid() for spy in spies}
    psutil.Process(parent).kill()
    assert not psutil.wait_procs(spies, timeout=GRACE_S)[1]
    assert "watch ended with status -9" in finish(started)


@needs_spy
def test_a_py_spy_that_is_killed_leaves_nobody_stopped() -> None:
    started = contended(
        """
        sys.stdin.readline()
        over.wait(1.0)
        over.set()
        for thread in threads: thread.join()
        rec = prof.stop()
        print(rec.coverage()["disabled"])
        """,
        "native=True",
    )
    spies = unwinders(started.pid)
    for process in spies:
        process.kill()
    assert not psutil.wait_procs(spies, timeout=GRACE_S)[1]
    assert len(spies) == 1
    assert "py-spy ended with status 9" in finish(started)
