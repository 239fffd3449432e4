"""Rule read-bandwidth: B2, B8, B33, B41 (reading below what the store gives)."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pytest
from dask import delayed
from dask.utils import SerializableLock

import stageprof
from findings.asking import asked, one, run
from findings.busy import Busy
from stageprof_collectors.findings import waiters
from stageprof_collectors.others import Others
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.read_bandwidth import RULE
from stageprof_runtime import scales
from stageprof_runtime.computation import Computation


def program(
    reads: int = 40,
    *,
    each: float = 80,
    cpu: float = 0.01,
    nbytes: int = 2_000,
    threads: int = 1,
) -> Recording:
    busy = Busy(threads)
    busy.facts(threads=threads, cpus=2)
    busy.tasks("fetched", reads, each, cpu=cpu, nbytes=nbytes)
    return busy.recording()


def test_small_reads_that_wait_are_counted_with_their_bytes_and_seconds() -> None:
    """B2, B33: bytes, waiting, and what more threads would save."""
    found = one(RULE, program())

    assert found.headline.startswith("40 reads of `fetched` bring 2.0 kB each and wait 80 ms")
    assert found.evidence["bytes_per_s"] == pytest.approx(2_000 / 0.08)
    assert found.cost_s == pytest.approx(3.2, rel=0.01)
    low, high = found.saving_s
    assert 0 <= low <= high
    # Sixteen at a time are three rounds instead of forty.
    assert high == pytest.approx(3.2 - 3 * 0.08, rel=0.05)


@pytest.mark.parametrize(
    ("reads", "nbytes", "cpu", "each", "fires"),
    [
        (20, 2_000, 0.01, 80, True),
        (19, 2_000, 0.01, 80, False),
        (40, 999_999, 0.01, 80, True),
        (40, 1_000_000, 0.01, 80, False),
        (40, 2_000, 0.19, 80, True),
        (40, 2_000, 0.21, 80, False),
        (40, 2_000, 0.01, 4, False),
    ],
)
def test_it_takes_many_small_reads_with_idle_threads(
    reads: int, nbytes: int, cpu: float, each: float, fires: bool
) -> None:
    assert bool(asked(RULE, program(reads, nbytes=nbytes, cpu=cpu, each=each), share=0.0)) == fires


def test_larger_reads_are_slow_beside_what_the_user_measured() -> None:
    """B8: 200 MB/s are to be had; ten are not."""
    slow = program(nbytes=1_600_000)

    assert asked(RULE, slow) == []
    assert asked(RULE, slow, expected_bytes_per_s=2e8)


def test_no_more_than_sixteen_threads_are_asked_for() -> None:
    assert asked(RULE, program(threads=16, reads=400)) == []


def test_tasks_that_need_others_are_no_reads() -> None:
    busy = Busy()
    first = busy.made.run(0, 2, 3, cause=-1)
    for i in range(40):
        busy.made.run(0, 3 + 80 * i, 83 + 80 * i, cause=first, needs=[first], key=f"sent-{i:032x}")

    assert asked(RULE, busy.made.recording(4000)) == []


def test_the_code_gives_the_workers_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """C35: what is printed runs, as it is; only the cluster is not started."""
    asked_for: dict[str, object] = {}
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: asked_for.update(options))
    monkeypatch.setattr("distributed.Client", lambda cluster: cluster)
    exec(one(RULE, program()).fix.code, {})

    assert asked_for == {"n_workers": 1, "threads_per_worker": 16}


# -- on local schedulers ---------------------------------------------------------------------------


def fetched(number: int, *, wait: float = 0.02, nbytes: int = 2_000, spin: int = 0) -> bytes:
    """A record from a store that answers after a while, parsed in so many steps."""
    time.sleep(wait)
    for _ in range(spin):
        number = number * 3 % 7
    return bytes(nbytes)


def locally(
    folder: Path, scheduler: str, threads: int = 2, *, gil: bool = False, **how: Any
) -> Recording:
    with stageprof.profile(folder / "reads.stageprof", gil=gil) as prof:
        records = [delayed(fetched)(number, **how) for number in range(40)]
        delayed(len)(records).compute(scheduler=scheduler, num_workers=threads)
    return prof.recording


@pytest.mark.parametrize(("scheduler", "now"), [("threads", 2), ("synchronous", 1)])
def test_small_reads_on_a_local_scheduler_want_more_threads(
    scheduler: str, now: int, tmp_path: Path
) -> None:
    recording = locally(tmp_path, scheduler)
    found, runs = one(RULE, recording), recording.timeline.runs

    assert found.headline.startswith("40 reads of `fetched`")
    assert found.evidence["median_bytes"] == 2_000
    assert f"here it gets {now} at a time" in found.fix.text
    # Sixteen at a time are three rounds instead of twenty or forty.
    each_s = float(np.mean((runs["stop"] - runs["start"])[:40])) / 1e9
    assert found.saving_s[1] == pytest.approx((40 / now - 3) * each_s, rel=0.25)


def test_the_code_for_a_local_scheduler_uses_more_threads(tmp_path: Path) -> None:
    found = one(RULE, locally(tmp_path, "threads"))

    with dask.config.set(scheduler=None, num_workers=None):
        run(found)
        assert dask.config.get("scheduler") == "threads"
        assert dask.config.get("num_workers") == 16


def fetched_in_turn(number: int, lock: SerializableLock) -> bytes:
    with lock:
        return fetched(number)


def test_waiting_for_ones_turn_is_no_waiting_for_storage() -> None:
    """A rate limit, a library that cannot serve two: more threads would wait for it as well."""
    lock = SerializableLock()
    with stageprof.profile(gil=False) as prof:
        records = [delayed(fetched_in_turn)(number, lock) for number in range(40)]
        delayed(len)(records).compute(scheduler="threads", num_workers=4)
    assert not asked(RULE, prof.recording)


@pytest.mark.parametrize("how", [{"nbytes": 2_000_000}, {"wait": 0.0}])
def test_large_or_quick_reads_on_a_local_scheduler_are_no_finding(
    how: dict[str, Any], tmp_path: Path
) -> None:
    assert asked(RULE, locally(tmp_path, "threads", **how)) == []


@pytest.mark.nightly
def test_small_reads_of_processes_want_more_threads(tmp_path: Path) -> None:
    found = one(RULE, locally(tmp_path, "processes", wait=0.1))

    assert "here it gets 2 at a time" in found.fix.text
    assert found.evidence["median_bytes"] == pytest.approx(2_000, rel=0.1)  # pickled


def brought(monkeypatch: pytest.MonkeyPatch, weigh_ns: int) -> list[int]:
    """What is told of 100 results, each of a read of 100 ms and weighed in so many ns."""
    clock, rows = itertools.count(0, weigh_ns), list[Any]()
    monkeypatch.setattr(scales, "thread_ns", lambda: next(clock))
    monkeypatch.setattr(scales, "weigh", len)
    emit: Any = SimpleNamespace(row=lambda _, row: rows.append(row))
    loop = Computation(emit, Future)
    for number in range(100):
        loop._brought(number, ("key", (b"read", None), False), 100_000_000, 0)
    return [nbytes for *_, nbytes in rows]


def test_weighing_what_reads_bring_takes_a_hundredth_of_what_they_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it takes longer some results are not weighed, which is told of them."""
    assert brought(monkeypatch, 1_000_000) == [4] * 100
    slowly = brought(monkeypatch, 30_000_000)
    assert len(slowly) == 100
    assert set(slowly) == {4, -1}
    assert 0.01 <= slowly.count(4) * 30 / (100 * 100) <= 0.014


def test_reads_that_were_not_weighed_count_as_well(tmp_path: Path) -> None:
    """The size of some stands for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scales, "WEIGHING", 0.0)
        found = one(RULE, locally(tmp_path, "threads"))
    assert found.evidence["reads"] == 40
    assert found.evidence["median_bytes"] == 2_000


@pytest.mark.parametrize(
    ("busy", "own", "fires"), [(2.0, 0.5, False), (2.0, 0.05, True), (1.2, 0.5, True)]
)
@pytest.mark.parametrize("watched", [False, True])
def test_waiting_for_a_processor_that_other_programs_have_is_no_reading(
    busy: float, own: float, fires: bool, watched: bool
) -> None:
    """A process that computes for all that others leave it waits for no storage."""
    made = Busy(threads=10)
    made.facts(threads=10, cpus=2)
    made.tasks("fetched", 400, 80, cpu=own / 10, nbytes=2_000)
    made.host(2, busy, own)
    if watched:
        made.held(2, 10)
    assert bool(asked(RULE, made.recording())) == fires


@pytest.mark.parametrize(("busy", "fires"), [(0, True), (1, False)])
def test_what_a_busy_host_leaves_is_no_bound_of_processes_elsewhere(
    busy: int, fires: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker on each of two hosts: what the other one's lacks is nothing to this one's reads.

    Each read computes 15 % of its time, four at a time: more than what a busy host leaves.
    """
    made = Busy(threads=4)
    made.facts(threads=4, cpus=2)
    made.tasks("fetched", 80, 80, cpu=0.15, nbytes=2_000)
    recording = made.recording()
    mine = int(recording.timeline.at.numbers[0])
    places = [[mine + 1], [mine]]
    found = [(places[busy], Others(1.5, 2.0)), (places[1 - busy], Others(0.0, 2.0, full=False))]
    monkeypatch.setattr(waiters, "beside", lambda _: found)
    assert bool(asked(RULE, recording)) == fires


def test_a_first_run_that_imports_does_not_hide_reads_that_wait() -> None:
    """On a busy host it takes long and computes all that it gets; the others compute nothing."""
    made = Busy()
    made.facts(threads=1, cpus=2)
    made.tasks("fetched", 1, 10_000, cpu=0.15, nbytes=2_000)
    made.tasks("fetched", 39, 100, cpu=0.002, nbytes=2_000)
    made.host(2, 2.0, 0.1)
    assert one(RULE, made.recording()).evidence["reads"] == 40


@pytest.mark.parametrize("gil", [False, True])
def test_waiting_for_the_gil_is_no_reading(gil: bool, tmp_path: Path) -> None:
    """Threads that compute in Python get little of a processor each."""
    recording = locally(tmp_path, "threads", 20, gil=gil, wait=0.0, spin=1_000_000)
    runs = recording.timeline.runs
    share = runs["cpu"].sum() / (runs["stop"] - runs["start"]).sum()
    assert share < RULE.limits["cpu"].default, "they did not wait for one another"
    assert not asked(RULE, recording)
