"""The rule io-bound: tasks that wait while processors stand idle."""

from __future__ import annotations

import time
from typing import Any

import dask
import pytest
from dask.utils import SerializableLock

import stageprof
from findings.asking import asked, one
from findings.busy import Busy
from stageprof_collectors.findings import waiters
from stageprof_collectors.others import Others
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.io_bound import RULE

ID = RULE.id


def program(
    tasks: int = 40,
    *,
    each: float = 80,
    cpu: float = 0.01,
    threads: int = 1,
    name: str = "asked",
    nbytes: int = 8,
) -> Recording:
    busy = Busy(threads)
    busy.facts(threads=threads, cpus=2)
    busy.tasks(name, tasks, each, cpu=cpu, nbytes=nbytes)
    return busy.recording()


def test_tasks_that_wait_are_told_with_what_more_threads_would_save_at_most() -> None:
    """Forty tasks of 80 ms on one thread, on sixteen in a sixteenth of the time."""
    found = one(RULE, program())

    assert found.headline.startswith("40 tasks of `asked`")
    assert "wait for 80 ms each and compute in 1 % of it" in found.headline
    assert found.evidence["threads_asked_for"] == 16
    assert found.saving_s == pytest.approx((0.0, 40 * 0.08 * 15 / 16), rel=0.05)
    assert "threads_per_worker=16" in found.fix.code


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": 0.5},  # they compute
        {"tasks": 5},
        {"each": 1},  # what Dask takes for each is longer
        {"threads": 16},
        {"name": "fetched", "nbytes": 2_000_000},  # it may be the bytes that take the time
        {"name": "shuffle-transfer"},
    ],
)
def test_it_is_silent_of_others(other: dict[str, Any]) -> None:
    assert not asked(RULE, program(**other))


@pytest.mark.parametrize("name", ["upload", "profile", "spread_out", "enrich_from_api"])
def test_what_writes_or_only_sounds_like_reading_is_told(name: str) -> None:
    assert one(RULE, program(name=name)).where.prefix == name


@pytest.mark.parametrize(
    ("name", "told"), [("fetched", "read-bandwidth"), ("imread", "read-bandwidth"), ("asked", ID)]
)
def test_of_many_small_reads_that_wait_the_rule_of_reads_tells(name: str, told: str) -> None:
    found = program(name=name, nbytes=2_000).findings()
    assert [f.rule for f in found if f.cause == f"layer:{name}"] == [told]


@pytest.mark.parametrize(
    ("cpu", "how", "told"),
    [(0.01, "library", True), (0.05, "library", False), (0.01, "python", False), (0.01, "", False)],
)
def test_where_no_processor_is_idle_they_may_wait_for_one(
    monkeypatch: pytest.MonkeyPatch, cpu: float, how: str, told: bool
) -> None:
    """Who waits for something else takes less of one than there is, and is seen in such a call."""
    full = [(range(9), Others(1.8, 2.0, full=True))]
    monkeypatch.setattr(waiters, "beside", lambda _: full)
    made = Busy(1)
    made.facts(threads=1, cpus=2)
    made.tasks("asked", 40, 80, cpu=cpu)
    if how:
        made.look("asked", 6, "connect", how, 30)
    assert bool(asked(RULE, made.recording())) is told


def answered(number: int) -> int:
    time.sleep(0.05)
    return number


def in_turn(number: int, lock: SerializableLock) -> int:
    with lock:
        return answered(number)


def test_waiting_for_a_lock_of_dasks_is_another_matter() -> None:
    with stageprof.profile(gil=False) as region:
        lock, call = SerializableLock(), dask.delayed(in_turn)
        dask.compute(*[call(i, lock) for i in range(12)], scheduler="threads", num_workers=4)
    assert not asked(RULE, region.recording, tasks=4)


def loaded(number: int, nbytes: int) -> bytes:
    time.sleep(0.02)
    return bytes(nbytes + number)


@pytest.mark.parametrize(("nbytes", "told"), [(2_000_000, False), (2_000, True)])
def test_large_reads_on_a_local_scheduler_may_wait_for_their_bytes(
    monkeypatch: pytest.MonkeyPatch, nbytes: int, told: bool
) -> None:
    monkeypatch.setattr(waiters, "beside", lambda _: [])  # whatever else runs here
    with stageprof.profile(gil=False) as region:
        records = [dask.delayed(loaded)(i, nbytes) for i in range(12)]
        dask.delayed(len)(records).compute(scheduler="threads", num_workers=2)
    assert bool(asked(RULE, region.recording, tasks=4)) is told


def test_on_a_local_scheduler_more_threads_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters, "beside", lambda _: [])  # whatever else runs here
    with stageprof.profile(gil=False) as region:
        calls = [dask.delayed(answered)(i) for i in range(16)]
        dask.compute(*calls, scheduler="threads", num_workers=2)
    found = one(RULE, region.recording)
    assert found.fix.code.endswith('dask.config.set(scheduler="threads", num_workers=16)')
    assert found.evidence["seen_in"] == f"answered at test_io_bound.py:{line_of_the_wait()}"


def line_of_the_wait() -> int:
    return answered.__code__.co_firstlineno + 1
