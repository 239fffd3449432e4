"""`deterministic=True`: every call is counted, in the region's thread, and nothing is left on."""

from __future__ import annotations

import cProfile
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from dask.delayed import delayed

import stageprof
from profiles.programs import awaited
from stageprof.cli import main
from stageprof_collectors.profiles.stats import REGION, Function, Stats, stats
from stageprof_runtime.called import rows_of
from stageprof_runtime.counting import Counting
from stageprof_runtime.event import CALLED, MARK
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import OUTSIDE, STEP, STEPS, Stage

SINCE_312 = sys.version_info >= (3, 12)


@pytest.fixture(autouse=True)
def nothing_on() -> Iterator[None]:
    """No profiler is on before or after."""
    assert sys.getprofile() is None
    yield
    there: object = sys.getprofile()
    sys.setprofile(None)
    assert there is None
    if SINCE_312:
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
        assert monitoring.get_tool(monitoring.PROFILER_ID) is None


def leaf(x: int) -> int:
    return x


def branch(n: int) -> int:
    return sum(leaf(i) for i in range(n))


def of(found: Stats, name: str) -> tuple[Function, tuple[Any, ...]]:
    ((function, figures),) = [(f, s) for f, s in found.items() if f[2] == name]
    return function, figures


def test_every_call_of_the_region_is_counted() -> None:
    with stageprof.profile(deterministic=True, gil=False) as prof:
        branch(1000)
        branch(500)
    found = stats(prof.recording)
    _, (primitive, calls, own, total, callers) = of(found, "branch")
    assert (primitive, calls) == (2, 2)
    assert 0 <= own <= total
    assert set(callers) == {REGION}
    assert of(found, "leaf")[1][:2] == (1500, 1500)
    assert prof.recording.coverage()["disabled"] == []


def test_calls_of_other_threads_are_not_counted() -> None:
    """From Python 3.12 on cProfile by itself would mix them up."""
    end = threading.Event()

    def other() -> None:
        while not end.is_set():
            branch(10)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with stageprof.profile(deterministic=True, gil=False) as prof:
            for _ in range(20):
                branch(5000)
    finally:
        end.set()
        thread.join()
    assert of(stats(prof.recording), "leaf")[1][1] == 100_000


def test_calls_are_cut_by_stage() -> None:
    with (
        stageprof.profile(deterministic=True, gil=False) as prof,
        dask.config.set(scheduler="sync"),
    ):
        dask.compute([delayed(leaf)(i) for i in range(300)])
        branch(200)
    building = stats(prof.recording, "construction")
    names = {function[2] for function in building}
    assert "call_function" in names
    assert "branch" not in names
    assert "branch" in {function[2] for function in stats(prof.recording, "outside")}
    steps = prof.recording.store.table("called")["step"].tolist()
    assert {STEPS[step][0] for step in steps} >= {Stage.CONSTRUCTION, Stage.SCHEDULING}


def test_all_stages_together_are_what_was_counted() -> None:
    with stageprof.profile(deterministic=True, gil=False) as prof:
        [delayed(leaf)(i) for i in range(300)]
    whole = sum(figures[2] for figures in stats(prof.recording).values())
    table = prof.recording.store.table("called")
    present = {str(STEPS[step][0]) for step in table["step"].tolist()}
    parts = sum(f[2] for stage in present for f in stats(prof.recording, stage).values())
    assert parts == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_it_is_off_when_the_block_raises(error: type[BaseException]) -> None:
    prof = stageprof.profile(deterministic=True, gil=False)

    def region() -> None:
        with prof:
            branch(10)
            raise error

    with pytest.raises(error):
        region()
    assert sys.getprofile() is None
    assert of(stats(prof.recording), "branch")[1][1] == 1


def test_it_is_off_after_a_decorated_function_and_an_async_region() -> None:
    decorated = stageprof.profile(deterministic=True, gil=False)

    async def region() -> stageprof.profile:
        async with stageprof.profile(deterministic=True, gil=False) as prof:
            branch(7)
        return prof

    assert decorated(branch)(3) == 3
    assert of(stats(decorated.recording), "leaf")[1][1] == 3
    assert of(stats(awaited(region()).recording), "leaf")[1][1] == 7


def said(prof: stageprof.profile) -> str:
    (line,) = prof.recording.coverage()["disabled"]
    return str(line)


def test_beside_a_users_own_profiler_nothing_is_counted_and_theirs_goes_on() -> None:
    events: list[str] = []

    def theirs(frame: object, event: str, arg: object) -> None:
        events.append(event)

    sys.setprofile(theirs)
    try:
        with stageprof.profile(deterministic=True, gil=False) as prof:
            branch(3)
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert prof.recording.store.rows("called") == 0
    assert said(prof).startswith("deterministic: another profiler (function) is on")
    assert "call" in events


def test_beside_a_cprofile_nothing_is_counted_and_it_goes_on() -> None:
    theirs = cProfile.Profile()
    theirs.enable()
    with stageprof.profile(deterministic=True, gil=False) as prof:
        branch(3)
    theirs.disable()
    assert "another profiler" in said(prof)
    codes = [entry.code for entry in theirs.getstats()]
    assert branch.__code__ in codes


def test_a_profiler_turned_on_meanwhile_stays_on() -> None:
    def theirs(frame: object, event: str, arg: object) -> None:
        return

    with stageprof.profile(deterministic=True, gil=False) as prof:
        branch(3)
        sys.setprofile(theirs)
    try:
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert "turned on meanwhile" in said(prof)


@pytest.mark.skipif(not SINCE_312, reason="there the later one replaces ours, see above")
def test_a_cprofile_may_be_used_within() -> None:
    with stageprof.profile(deterministic=True, gil=False) as prof:
        theirs = cProfile.Profile()
        theirs.enable()
        branch(3)
        theirs.disable()
    assert branch.__code__ in [entry.code for entry in theirs.getstats()]
    assert of(stats(prof.recording), "leaf")[1][1] == 3


def test_a_region_that_ends_in_another_thread_says_so() -> None:
    ring = Ring()
    counting = Counting(ring)
    began, end = threading.Event(), threading.Event()

    def begin() -> None:
        counting.begin()
        began.set()
        end.wait(10)
        sys.setprofile(None)

    thread = threading.Thread(target=begin)
    thread.start()
    began.wait(10)
    counting.end()
    end.set()
    thread.join()
    (mark,) = ring.take()
    assert (mark[0], "another thread" in mark[3]) == (MARK, True)


def test_counting_that_fails_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> Any:
        raise MemoryError

    monkeypatch.setattr("stageprof_runtime.counting.rows_of", fails)
    with stageprof.profile(deterministic=True, gil=False) as prof:
        assert branch(10) == 45
    assert prof.recording.store.rows("called") == 0
    assert prof.recording.coverage()["dropped"] == {"hook failed: deterministic": 1}


def test_a_program_can_be_run_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = "def f(): return sum(range(10))\nfor _ in range(50): f()\nraise SystemExit(3)"
    assert main(["run", "-q", "--deterministic", "-o", "a.stageprof", "-c", program]) == 3
    found = stats(stageprof.open("a.stageprof"))
    assert of(found, "f")[1][1] == 50
    assert main(["run", "-q", "-o", "b.stageprof", "-c", program]) == 3
    assert stageprof.open("b.stageprof").store.rows("called") == 0


@pytest.mark.parametrize("deterministic", [[], ["--deterministic"]])
def test_what_runs_the_program_is_not_in_its_profile(
    deterministic: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A folder of the user's may be called so, too.
    program = tmp_path / "stageprof" / "etl.py"
    program.parent.mkdir()
    program.write_text(
        "from dask.delayed import delayed\n"
        "def build(): return [delayed(abs)(i) for i in range(4000)]\n"
        "build()\n"
    )
    assert main(["run", "-q", *deterministic, "-o", "a.stageprof", str(program)]) == 0
    recording = stageprof.open("a.stageprof")
    stacks = recording.flame("construction").stacks
    assert {stack[0].name for stack in stacks} == {"<module>"}
    assert {stack[1].name for stack in stacks} == {"build"}
    names = {function[2] for function in stats(recording)}
    assert not names & {"profiled", "status_of", "Program.run"}


# -- how calls are shared out ---------------------------------------------------------------------


def counted(function: Callable[[], object]) -> list[tuple[Any, ...]]:
    """The rows of what cProfile counted of a function, in a thread without others."""
    ring = Ring()
    counting = Counting(ring)
    counting.begin()
    function()
    counting.end()
    return [row for row in ring.take() if row[0] == CALLED]


def test_what_users_call_of_dask_is_building_and_what_they_call_of_others_is_outside() -> None:
    def program() -> None:
        branch(10)
        delayed(leaf)(1)

    steps: dict[str, set[int]] = {}
    for row in counted(program):
        steps.setdefault(row[2], set()).add(row[1])
    assert steps["leaf"] == {OUTSIDE}
    assert steps["call_function"] == {STEP["build"]}
    assert steps["uuid4"] == {STEP["build"]}


def test_rows_of_a_function_sum_to_its_own_figures_also_in_circles() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    profile = cProfile.Profile()
    if SINCE_312:
        profile.enable()
        even(50)
        profile.disable()
    else:
        profile.runcall(even, 50)
    entries = list(profile.getstats())
    rows = rows_of(entries)
    for entry in entries:
        name = getattr(entry.code, "co_qualname", str(entry.code))
        mine = [row for row in rows if row[2] == name[:200]]
        assert sum(row[8] for row in mine) == entry.callcount
        assert sum(row[10] for row in mine) == round(entry.inlinetime * 1e9)
        assert sum(row[11] for row in mine) == round(entry.totaltime * 1e9)


def test_nothing_counted_is_no_row() -> None:
    assert rows_of([]) == []
