"""What is told of a stack: its part that matters, its step, and what kind of work it is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import distributed
import pandas as pd
import pytest

from clusters import soon
from profiles.stacks_made import stack_through
from stageprof_runtime import sampler
from stageprof_runtime.event import FLAME
from stageprof_runtime.probes import loops
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import PERIOD_S, Sampler, Stood
from stageprof_runtime.stage import OUTSIDE, STEP
from stageprof_runtime.stem import Stem, frames_of, of_task
from stageprof_runtime.stopped import clock_of, idle, used_ns, work
from stageprof_runtime.tree import described, spots

DASK = str(Path(str(dask.__file__)).parent)
DISTRIBUTED = str(Path(str(distributed.__file__)).parent)
PANDAS = str(Path(str(pd.__file__)).parent)
OURS = str(Path(str(sampler.__file__)).parent)
USER = "/home/u/etl.py"
MS = 1_000_000

OUTER = [
    ("run", threading.__file__),
    ("timed", f"{OURS}/probes/execution.py"),
    ("_run_task", f"{DISTRIBUTED}/worker.py"),
    ("call", f"{DASK}/_task_spec.py"),
]


def names(frames: Any) -> list[str]:
    return [described(spot)[0] for spot in spots(frames)]


# -- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ([("load", USER), ("parse", USER)], ["load", "parse"]),
        ([("apply_and_enforce", f"{DASK}/dataframe/core.py"), ("load", USER)], ["load"]),
        (
            [("concat", f"{DASK}/dataframe/methods.py"), ("concat", f"{PANDAS}/core/reshape.py")],
            ["concat", "concat"],
        ),
        ([("apply", f"{PANDAS}/core/frame.py"), ("score", USER)], ["apply", "score"]),
        ([], ["call"]),
    ],
)
def test_a_task_is_told_from_its_function_inward(
    inner: list[tuple[str, str]], told: list[str]
) -> None:
    assert names(of_task(stack_through(*OUTER, *inner))) == told


def test_a_task_of_the_synchronous_scheduler_is_told_without_the_program_around_it() -> None:
    around = [("main", USER), ("_run", f"{OURS}/computation.py")]
    stack = stack_through(*around, ("execute_task", f"{DASK}/local.py"), ("load", USER))
    assert names(of_task(stack)) == ["load"]


# -- the region -----------------------------------------------------------------------------------


def test_a_region_is_told_from_the_function_that_began_it() -> None:
    found: list[list[str]] = []

    def region() -> None:
        stem = Stem(frames_of(sys._getframe()))
        work_of(stem)

    def work_of(stem: Stem) -> None:
        found.append(names(stem.rest(frames_of(sys._getframe()))))

    region()
    function = "test_a_region_is_told_from_the_function_that_began_it.<locals>"
    assert found == [[f"{function}.region", f"{function}.work_of"]]


def test_a_region_begun_in_a_function_that_has_returned_is_told_from_its_caller() -> None:
    def begin() -> Stem:
        return Stem(frames_of(sys._getframe()))

    stem = begin()
    told = names(stem.rest(frames_of(sys._getframe())))
    assert told == ["test_a_region_begun_in_a_function_that_has_returned_is_told_from_its_caller"]


# -- time between looks ---------------------------------------------------------------------------


def looked(*looks: tuple[float, Stood | None]) -> dict[str, tuple[int, float]]:
    """Looks and ms of each function, where the thread stood at these ms after the beginning."""
    ring = Ring()
    sampler = Sampler(ring, 0)
    begin = sampler._last
    for at, stood in looks:
        t = begin + round(at * MS)
        sampler.stand(stood, t)
        sampler.see((0, ""), t)
    sampler.stand(None, sampler._last)
    rows = ring.take()
    nodes = {row[1]: row[3] for row in rows if row[0] != FLAME}
    found = {nodes[row[5]]: (row[6], row[7] / MS) for row in rows if row[0] == FLAME}
    return {name: found[name] for name in sorted(found)}


def standing(name: str) -> Stood:
    return Stood(STEP["build"], "python", spots(stack_through((name, USER))))


def test_the_time_between_two_looks_is_halved_between_what_they_saw() -> None:
    a, b = standing("a"), standing("b")
    assert looked((20, a), (40, a), (60, b), (80, None)) == {"a": (2, 40.0), "b": (1, 20.0)}


def test_a_gap_belongs_to_what_is_seen_after_it() -> None:
    """The thread held the GIL in one C call, which has just returned."""
    late = 1000 * 2.5 * PERIOD_S
    assert looked((20, standing("a")), (20 + late, standing("b"))) == {
        "a": (1, 10.0),
        "b": (1, late),
    }


def test_the_region_thread_is_looked_at_by_step() -> None:
    """Planted: most of the time in a function of the user's outside Dask."""
    ring, end = Ring(), threading.Event()
    looking: list[Sampler] = []

    def busy() -> None:
        looking.append(Sampler.here(ring))
        while not end.is_set():
            sum(range(100))
        looking[0].stop()

    thread = threading.Thread(target=busy)
    thread.start()
    soon(lambda: looking and looking[0].looks >= 5)
    end.set()
    thread.join()
    rows = [row for row in ring.take() if row[0] == FLAME]
    assert {row[2] for row in rows} == {OUTSIDE}
    assert sum(row[6] for row in rows) >= 4
    assert not looking[0].watch.failures


# -- kinds of work --------------------------------------------------------------------------------


def spinning(begun: threading.Event, end: threading.Event) -> None:
    begun.set()
    i = 0
    while not end_now(end):
        i += 1


def end_now(end: threading.Event) -> bool:
    return end.is_set()


def resting(begun: threading.Event, end: threading.Event) -> None:
    begun.set()
    end.wait(30)


def kinds(function: Callable[..., None], *, least: int = 10) -> set[str]:
    """What looks at a thread that runs a function say; the first is for its clock."""
    begun, end = threading.Event(), threading.Event()
    clocks: list[int] = []

    def run() -> None:
        clocks.append(clock_of(threading.get_ident()))
        function(begun, end)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait(10)
    found: set[str] = set()
    used, at = used_ns(clocks[0]), time.perf_counter_ns()
    pause = threading.Event()
    for _ in range(least):
        pause.wait(0.01)  # lets the other thread run: it is what is looked at
        now_used, now = used_ns(clocks[0]), time.perf_counter_ns()
        idling = idle(now_used - used, now - at, 1)
        used, at = now_used, now
        frame = sys._current_frames()[thread.ident or 0]
        found.add(work(frame, "", waited=False, idling=idling))
    end.set()
    thread.join()
    return found


@pytest.mark.skipif(not clock_of(threading.get_ident()), reason="no clocks of threads here")
def test_a_thread_that_waits_is_told_from_one_that_works() -> None:
    assert kinds(resting) == {"waiting"}
    assert "waiting" not in kinds(spinning)
    assert "python" in kinds(spinning, least=60)


def test_a_clock_of_a_thread_that_is_gone_says_so() -> None:
    clocks: list[int] = []
    thread = threading.Thread(target=lambda: clocks.append(clock_of(threading.get_ident())))
    thread.start()
    thread.join()
    soon(lambda: used_ns(clocks[0]) == -1)
    assert used_ns(0) == -1
    assert not idle(-1, 10, 1)


def test_kinds_that_were_told_from_the_whole_stack_stay() -> None:
    frame = sys._getframe()
    assert work(frame, "iterrows", waited=False, idling=True) == "iterrows"


# -- the scheduler's loop -------------------------------------------------------------------------

LOOP = [("run_forever", "/usr/lib/python3/asyncio/base_events.py")]


@pytest.mark.parametrize(
    ("stack", "step"),
    [
        ([("update_graph", "scheduler.py")], "graph.load"),
        (
            [("update_graph", "scheduler.py"), ("_create_taskstate_from_graph", "scheduler.py")],
            "state",
        ),
        ([("handle_stream", "core.py"), ("_transitions", "scheduler.py")], "transition"),
        ([("write", "comm/tcp.py"), ("dumps", "protocol/core.py")], "task.dump"),
    ],
)
def test_the_innermost_function_that_names_a_step_decides(
    stack: list[tuple[str, str]], step: str
) -> None:
    frames = stack_through(*((name, f"{DISTRIBUTED}/{file}") for name, file in stack))
    assert loops.step_of(frames) == STEP[step]


def test_what_names_no_step_is_unexplained_and_ordering_is_ordering() -> None:
    assert loops.step_of(stack_through(("heartbeat", f"{DISTRIBUTED}/scheduler.py"))) == 0
    ordering = stack_through(("sort_key", f"{DASK}/order.py"))
    assert loops.step_of(ordering) == STEP["order"]


def test_a_loop_that_waits_is_not_looked_at() -> None:
    selecting = stack_through(*LOOP, ("select", "/usr/lib/python3/selectors.py"))
    assert loops.is_idle(selecting[0])
    assert not loops.is_idle(stack_through(("heartbeat", f"{DISTRIBUTED}/scheduler.py"))[0])
