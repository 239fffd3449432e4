"""The rule threads-below-cpus: C25, C26, C27."""

from __future__ import annotations

import pytest
from dask import delayed
from dask.system import CPU_COUNT

import stageprof
from clusters import local
from findings.asking import asked, one
from findings.crews import Crewed
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.threads_below_cpus import RULE
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stack import PYTHON


def test_a_number_of_cpus_that_no_machine_has_is_not_taken_at_its_word() -> None:
    """A replay holds each thread: of a million of them nothing else has room."""
    recording = queued(300_000_000)
    assert Crew(recording).fullest[0].cpus <= 100_000
    assert asked(RULE, recording)


def queued(
    cpus: int,
    *,
    workers: int = 1,
    tasks: int = 8,
    bytecode: float = 0,
    free: bool = False,
    took_s: float = 0,
) -> Recording:
    """Tasks of 100 ms in line for the one thread of each worker."""
    made = Crewed(workers)
    for worker in range(workers):
        made.took(worker, 100.0 * (tasks // workers), took_s)
    if free:
        made.free()
    for worker in range(workers):
        made.cpus(worker, cpus)
    if bytecode:
        made.looked(0, "work", PYTHON, bytecode)
        made.looked(0, "work", "native", 100 - bytecode)
    graph = made.graph(0, 0, 0, wanted=tasks)
    for i in range(tasks):
        start = 100.0 * (i // workers)
        key = f"work-{i}"
        made.run(
            i % workers, start, start + 100, cause=-1 - graph, lead=(0, 0), key=key, wanted=True
        )
    end = 100.0 * (tasks // workers)
    made.wait_for(0, end, f"work-{tasks - 1}")
    return made.recording(end)


def test_a_thread_on_a_host_of_four_cpus_is_found_with_what_four_would_save() -> None:
    """C26: the option was not changed with the machine."""
    found = one(RULE, queued(4))

    assert (found.evidence["threads"], found.evidence["cpus"]) == (1, 4)
    assert found.saving_s == pytest.approx((0.6, 0.6), abs=0.02)
    assert "1 worker with 1 thread on a host of 4 CPUs" in found.headline
    assert "LocalCluster(n_workers=1, threads_per_worker=4)" in found.fix.code
    compile(found.fix.code, "<fix>", "exec")


@pytest.mark.parametrize(("cpus", "workers", "fires"), [(2, 1, True), (2, 2, False), (1, 1, False)])
def test_it_fires_where_a_host_has_more_cpus_than_threads(
    cpus: int, workers: int, fires: bool
) -> None:
    """C27: all workers of a host together."""
    assert bool(asked(RULE, queued(cpus, workers=workers))) is fires


@pytest.mark.parametrize(("took_s", "fires"), [(0.8, True), (2.8, False)])
def test_cpus_that_the_tasks_libraries_use_are_not_idle(took_s: float, fires: bool) -> None:
    """Of 0.8 s on four CPUs, trainings with four threads each."""
    assert bool(asked(RULE, queued(4, took_s=took_s))) is fires


def test_cpus_that_are_not_known_accuse_nobody() -> None:
    assert asked(RULE, queued(0)) == []


def test_a_single_task_has_no_use_for_more_threads() -> None:
    assert asked(RULE, queued(4, tasks=1)) == []


def test_tasks_in_bytecode_get_processes_instead_of_threads() -> None:
    """C25: threads of one process would wait for the GIL."""
    found = one(RULE, queued(4, bytecode=90))

    assert "LocalCluster(n_workers=4, threads_per_worker=1)" in found.fix.code
    assert "90 %" in found.fix.text


def test_bytecode_gets_threads_where_there_is_no_gil() -> None:
    found = one(RULE, queued(4, bytecode=90, free=True))

    assert "LocalCluster(n_workers=1, threads_per_worker=4)" in found.fix.code
    assert "bytecode" not in found.fix.text
    assert found.evidence["bytecode_share"] == pytest.approx(0.9)


def test_a_real_worker_tells_how_many_cpus_it_may_use() -> None:
    """C27: what affinity and quota leave, not what the machine has."""
    with local(1) as client, stageprof.profile(client=client) as prof:
        delayed(abs)(-1).compute()

    (member,) = Crew(prof.recording).members

    assert member.cpus == CPU_COUNT
    assert member.threads == 1
