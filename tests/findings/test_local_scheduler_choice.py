"""Rule local-scheduler-choice: threads that share a GIL, processes that copy."""

from __future__ import annotations

import operator
import os
from typing import Any

import dask
import numpy as np
import pytest
from dask import delayed

import stageprof
from findings.asking import asked, one, run
from findings.crowded import CLIENT, LANE, ns
from stageprof_collectors.findings.copying import TURN_S
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.local_scheduler_choice import LIGHT_S, RULE, START_S
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    ASSIGN,
    BLOCK,
    DEPEND,
    FINISH,
    GRAPH,
    MARK,
    RUN,
    SAMPLE,
    SHARE,
    SPAN,
    SUBMIT,
)
from stageprof_runtime.stage import STEP

FIRST = 2**40


def local(
    *, threads: int = 2, cpu: float = 0.5, contention: float = 0.5, processes: bool = False,
    copying: float = 0.0, tasks: int = 8, starting: float = 0.0, shared: int = 0,
    spans: int = 10**9, kept: float = 0.0, layers: int = 1, between: float = 0.0,
    cpus: int = 0,
) -> Recording:  # fmt: skip
    """Tasks of a second each on a local scheduler's threads, or processes.

    `kept`: how many of two processors other programs keep busy; `cpus`: of so many, and the tasks
    on the program's own thread.
    """
    rows: list[tuple[object, ...]] = [(MARK, ns(0), "region start", f"{LANE} {LANE}")]
    rows.append((SUBMIT, FIRST, ns(0), 1, 0, LANE, "/home/u/etl.py", 9))
    rows.append((GRAPH, FIRST, ns(0), ns(0), tasks, 1, "local", -1))
    each = 1000.0 + between
    end = starting + tasks / threads * each + copying
    for i in range(tasks):
        start = starting + i // threads * each + between
        times = tuple(ns(t) for t in (start, start, start, start + 1000))
        where = f"process {50 + i % threads}" if processes else "local"
        thread = LANE if cpus else (50 if processes else 100) + i % threads
        before = FIRST + i - threads if i >= threads else -1 - FIRST
        key = f"counted{i % layers or ''}-{i:032x}"
        told = start if i >= threads else 0.0
        rows.append((ASSIGN, FIRST + i, ns(told), "local", before, key))
        if i >= threads:
            rows.append((DEPEND, FIRST + i, -1))
        rows.append((RUN, FIRST + i, *times, thread, round(cpu * 1e9), where))
        rows.append((FINISH, FIRST + i, times[-1], 0, 0, ""))
    if copying:
        rows.append((SPAN, STEP["result.load"], ns(end - copying), ns(end), LANE, "", spans))
    if shared:
        rows.append((SHARE, ns(end), STEP["result.load"], "counted", tasks, 1000, shared))
    if kept:
        rows += [(SAMPLE, ns(t), "host.cpus", 2.0) for t in (0, end)]
        rows += [(SAMPLE, ns(t), "host.busy_s", (kept + 1) * t / 1000) for t in (0, end)]
        rows += [(SAMPLE, ns(t), "process.cpu_s", t / 1000) for t in (0, end)]
    if cpus:
        rows.append((SAMPLE, ns(0), "host.cpus", float(cpus)))
    else:
        rows.append((BLOCK, ns(0), ns(end - copying), LANE, "local", 0, 0, 0, ""))
    rows.append((SPAN, STEP["local.loop"], ns(0), ns(end), LANE, "get", 0))
    rows += [(SAMPLE, ns(t), "gil.contention", contention) for t in (0, end)]
    rows.append((MARK, ns(end), "region stop", f"{LANE}"))
    store = Store()
    store.add(pack(CLIENT, 0, ns(0), []))
    store.add(pack(CLIENT, 1, ns(end), rows))
    store.complete = True
    recording = Recording(store)
    assert cpus or recording.replay.error < 0.01
    return recording


def test_threads_that_wait_for_the_gil_get_processes_with_the_predicted_time() -> None:
    """Two threads at half speed each: in processes eight seconds of work take two, not four."""
    found = one(RULE, local())
    low, high = found.saving_s
    assert high == pytest.approx(2.0 - LIGHT_S, abs=0.05)
    assert low == 0  # what would be copied is not known
    assert found.cost_s == pytest.approx(2.0, abs=0.05)
    assert found.evidence["predicted_low_s"] == pytest.approx(4.0 - high)
    assert "`counted`" in found.headline
    assert 'scheduler="processes"' in found.fix.code


def test_two_threads_never_take_more_than_twice_as_long_as_two_processes() -> None:
    """What else they waited for, another program's processor, no process is spared."""
    found = one(RULE, local(cpu=0.2, contention=0.8))
    assert found.saving_s[1] == pytest.approx(2.0 - LIGHT_S, abs=0.05)


@pytest.mark.parametrize(
    "facts",
    [
        {"contention": 0.1},
        {"cpu": 0.95},  # each thread has its processor: nothing is waited for
        {"threads": 1, "cpu": 1.0},
        {"tasks": 1, "threads": 1},
    ],
)
def test_threads_that_do_not_wait_are_left_alone(facts: dict[str, float]) -> None:
    assert not asked(RULE, local(**facts))  # type: ignore[arg-type]


def test_saving_that_the_start_of_processes_eats_is_not_promised() -> None:
    assert not asked(RULE, local(tasks=2, cpu=0.85))


def test_of_a_short_run_nothing_is_said() -> None:
    """A pool of two that import a data frame's modules takes a second; 0.2 s were supposed."""
    assert not asked(RULE, local(tasks=2))
    assert asked(RULE, local(tasks=6))


def test_processes_start_more_slowly_beside_other_programs() -> None:
    """Two of ours and one of theirs on two processors: a second of work takes one and a half."""
    found = one(RULE, local(kept=1.0))
    assert found.evidence["starting_processes_s"] == pytest.approx(1.5 * START_S, rel=0.01)
    assert found.saving_s[1] == pytest.approx(2.0 - 1.5 * LIGHT_S, abs=0.05)
    assert "that takes 1.50 s" in found.fix.text
    assert not asked(RULE, local(kept=1.0, tasks=6))


@pytest.mark.parametrize(("copying", "fires"), [(460.0, True), (430.0, False)])
def test_processes_that_copy_get_threads_from_a_tenth_of_the_run(
    copying: float, fires: bool
) -> None:
    assert bool(asked(RULE, local(processes=True, copying=copying))) == fires


def test_what_goes_through_pipes_between_tasks_may_be_saved_too() -> None:
    """400 ms before four tasks of each process, 16 of which eight tasks take in any case."""
    found = one(RULE, local(processes=True, copying=1000, between=400.0, cpu=1.0))
    assert found.evidence["starting_processes_s"] == pytest.approx(0.4)
    assert found.evidence["through_pipes_s"] == pytest.approx(3 * 0.4 - 8 * TURN_S, abs=0.01)
    assert found.cost_s == pytest.approx(1.0 + 4 * 0.4 - 8 * TURN_S, abs=0.02)
    assert found.saving_s[1] == pytest.approx(found.cost_s, abs=0.02)


def test_what_is_copied_is_told_and_may_all_be_saved() -> None:
    found = one(RULE, local(processes=True, copying=1000, cpu=1.0))
    assert found.cost_s == pytest.approx(1.0)
    assert found.saving_s == pytest.approx((0.0, 1.0))
    assert found.evidence["copied_bytes"] == 10**9
    assert 'scheduler="threads"' in found.fix.code


def test_threads_need_not_be_started() -> None:
    """The prediction was 2.2-2.7 s where threads took 1.2: the start of the pool was left out."""
    found = one(RULE, local(processes=True, copying=1000, starting=1500, cpu=0.7))
    assert found.evidence["starting_processes_s"] == pytest.approx(1.5)
    assert found.cost_s == pytest.approx(2.5)
    assert "starts processes and copies" in found.headline
    assert "2.50 s of 6.50 s" in found.headline
    # In turn the tasks compute 5.6 s, which the processes did in 4.0.
    assert found.saving_s == pytest.approx((0.9, 2.5))
    assert "the same takes 4.0-5.6 s" in found.fix.text


@pytest.mark.parametrize(("starting", "fires"), [(8000, True), (1500, False)])
def test_processes_that_only_start_get_threads_where_these_are_sure_to_save(
    starting: float, *, fires: bool
) -> None:
    """Short computes one after another start them each time: five sixths of a run were not told."""
    found = asked(RULE, local(processes=True, starting=starting, cpu=1.0))
    assert bool(found) is fires


def test_what_was_copied_is_read_from_what_tasks_and_results_are_said_to_have() -> None:
    """Spans of a local scheduler have no bytes: the evidence was `copying 358 ms, copied 0 B`."""
    recording = local(processes=True, copying=1000, spans=0, shared=3_000_000)
    assert one(RULE, recording).evidence["copied_bytes"] == 3_000_000


def test_bytes_that_nobody_told_are_no_evidence() -> None:
    assert "copied_bytes" not in one(RULE, local(processes=True, copying=1000, spans=0)).evidence


@pytest.mark.parametrize("processes", [True, False])
def test_printed_code_chooses_the_other_scheduler(processes: bool) -> None:
    found = one(RULE, local(processes=processes, copying=1000.0 * processes))
    with dask.config.set(scheduler=None, chunksize=6):
        run(found)
        assert dask.config.get("scheduler") == ("threads" if processes else "processes")


@pytest.mark.parametrize(("tasks", "few"), [(8, True), (48, False)])
def test_few_tasks_are_handed_out_one_by_one(tasks: int, *, few: bool) -> None:
    """Dask gives a process six at a time: of eight the second of two would get two."""
    found = one(RULE, local(tasks=tasks))
    with dask.config.set(scheduler=None, chunksize=6):
        run(found)
        assert dask.config.get("chunksize") == (1 if few else 6)
    assert ("one by one" in found.fix.text) == few


def test_few_tasks_of_the_layer_that_takes_the_time_are_few() -> None:
    """Of 60 tasks eight did the work, and one of two processes was given six of them."""
    assert "with 8 tasks leaves others without" in one(RULE, local(tasks=48, layers=6)).fix.text


def test_a_small_real_run_is_left_alone() -> None:
    with dask.config.set(scheduler="threads"), stageprof.profile() as prof:
        dask.compute(*[delayed(operator.add)(i, 1) for i in range(20)])
    assert not asked(RULE, prof.recording)


# -- on the program's own thread -------------------------------------------------------------------


def test_a_scheduler_that_is_for_debugging_is_told_of() -> None:
    """It was nothing to fix: no rule looked at it."""
    found = one(RULE, local(threads=1, cpu=0.9, cpus=4))
    assert "8 tasks, most of `counted`" in found.headline
    assert "one after another on your program's own thread, of 4 CPUs" in found.headline
    assert found.evidence["at_once"] == pytest.approx(8)
    assert found.saving_s == pytest.approx((0.0, 6.0), rel=0.01)
    with dask.config.set(scheduler=None):
        run(found)
        assert dask.config.get("scheduler") == "threads"


@pytest.mark.parametrize(
    "facts", [{"cpus": 1}, {"cpus": 4, "cpu": 0.1, "contention": 0.0}, {"cpus": 4, "tasks": 1}]
)
def test_where_nothing_is_to_gain_by_another_it_is_not(facts: dict[str, Any]) -> None:
    """One processor; tasks that wait for something outside; one task."""
    assert not asked(RULE, local(threads=1, **facts))


def sorted_part(seed: int, _before: float = 0.0) -> float:
    return float(np.sort(np.random.default_rng(seed).normal(size=2_000_000))[0])


def counted_part(number: int) -> int:
    for _ in range(3_000_000):
        number = number * 3 % 7
    return number


def synchronous(*tasks: Any) -> list[Finding]:
    with stageprof.profile(gil=False) as prof:
        dask.compute(*tasks, scheduler="synchronous")
    return asked(RULE, prof.recording)


def chain(links: int) -> Any:
    made: Any = 0.0
    for seed in range(links):
        made = delayed(sorted_part)(seed, made)
    return made


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is nothing to run side by side on")
def test_real_runs_on_the_programs_own_thread() -> None:
    """What could run at once gets threads, pure Python processes, and a chain nothing."""
    (found,) = synchronous(*[delayed(sorted_part)(seed) for seed in range(8)])
    assert 'scheduler="threads"' in found.fix.code
    (found,) = synchronous(*[delayed(counted_part)(number) for number in range(8)])
    assert 'scheduler="processes"' in found.fix.code
    assert not synchronous(chain(8))
    with stageprof.profile(gil=False) as prof:
        for seed in range(8):
            delayed(sorted_part)(seed).compute(scheduler="synchronous")
    assert not asked(RULE, prof.recording)
