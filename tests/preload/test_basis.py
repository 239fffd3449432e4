"""What a segment says of before it is true then: no run that ended, and no worker that left."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from preload.shipped import SCHEDULER, WORKER, at, begins, ends, hello, look, shipped
from stageprof_runtime.event import ASSIGN, MARK, NODE, Place
from stageprof_runtime.flight import basis, runs
from stageprof_runtime.flight.basis import RUNS, Basis, unpacked
from stageprof_runtime.flight.table import rows

#: A second worker, which keeps on.
OTHER = WORKER._replace(pid=3, name="tcp://host:2")


def given(run: int, seq: int, worker: Place = WORKER) -> tuple[object, ...]:
    """A run is given to a worker at a place's `seq`-th 100 ms."""
    return (ASSIGN, run, at(seq), worker.name, -1, f"long-{run}")


def left(seq: int, worker: Place = WORKER) -> tuple[object, ...]:
    """A worker leaves then."""
    return (MARK, at(seq), "worker left", worker.name)


def of(*batches: bytes) -> Basis:
    """What is known after these."""
    found = Basis()
    for batch in batches:
        found.absorb(batch)
    return found


def underway(found: Basis) -> list[int]:
    """The runs that it holds to be under way, and -1 for a graph that somebody waits for."""
    numbers: list[int] = []
    for packed in found.batches():
        batch = unpacked(packed)
        numbers += [-1] * ("graph" in batch["tables"])
        numbers += [run for run, *_ in rows(batch, ASSIGN)]
    return numbers


def known(found: Basis) -> set[Place]:
    """The places that a segment which begins now tells of."""
    found.turn()
    batches = (unpacked(packed) for packed in found.batches())
    return {Place(*batch["place"]) for batch in batches}


def test_a_run_is_under_way_until_its_end_is_told() -> None:
    began = [*hello(), begins(1, 1), shipped(SCHEDULER, 2, running=1)]
    assert underway(of(*began)) == [-1, 1]
    assert underway(of(*began, *ends(1, 3, 1))) == []


def test_a_run_whose_end_may_have_been_lost_with_rows_is_forgotten() -> None:
    """As where the ring was full: what is told in the same batch came later."""
    lost = shipped(SCHEDULER, 2, given(2, 2), lost=50, running=2)
    found = of(*hello(), begins(1, 1), lost)
    assert underway(found) == [-1, 2]
    found.absorb(shipped(SCHEDULER, 3, lost=50, running=2))
    assert underway(found) == [-1, 2]


def test_a_run_whose_end_may_have_been_lost_with_a_batch_is_forgotten() -> None:
    """As where the disk was too slow."""
    found = of(*hello(), begins(1, 1), shipped(SCHEDULER, 3, given(2, 3), running=2))
    assert underway(found) == [-1, 2]


def test_a_scheduler_that_counts_no_run_under_way_has_none() -> None:
    """However an end was lost; but a run may be told just before it is counted."""
    assert underway(of(*hello(), begins(1, 1))) == [-1, 1]
    assert underway(of(*hello(), begins(1, 1), shipped(SCHEDULER, 2))) == []


@pytest.mark.parametrize("why", ["sampled", "over its time budget"])
def test_of_a_scheduler_that_does_not_tell_of_all_runs_none_are_kept(why: str) -> None:
    off = (MARK, at(2), "hook disabled", f"scheduler.transition: {why}")
    found = of(*hello(), begins(1, 1), shipped(SCHEDULER, 2, off, running=1))
    found.absorb(shipped(SCHEDULER, 3, given(2, 3), running=2))
    assert underway(found) == []


def test_another_hook_that_is_off_changes_nothing() -> None:
    off = (MARK, at(2), "hook disabled", "scheduler.transfer: sampled")
    assert underway(of(*hello(), begins(1, 1), shipped(SCHEDULER, 2, off, running=1))) == [-1, 1]


def test_runs_of_a_worker_that_leaves_go_with_it() -> None:
    """Those that another one has been given at the same address since are its own."""
    runs = given(1, 1), given(2, 1, OTHER), given(3, 3)
    found = of(*hello(), shipped(SCHEDULER, 1, *runs, left(2), running=3))
    assert underway(found) == [2, 3]


def test_runs_beyond_those_that_are_kept_are_told_until_none_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "MOST", 1)
    found = of(*hello(), shipped(SCHEDULER, 1, given(1, 1), given(2, 1), running=2))
    assert underway(found) == [1]
    assert list(found.lacking) == [RUNS]
    found.absorb(shipped(SCHEDULER, 2))
    assert list(found.lacking) == []


def test_a_worker_that_left_stays_away_whatever_comes_of_it_later() -> None:
    """Another one of its host sends what it could not: that is in the segment, and in no later."""
    found = of(*hello(), look(1), shipped(OTHER, 0), shipped(SCHEDULER, 1, left(1)))
    assert known(found) == {SCHEDULER, OTHER}
    found.absorb(look(2))
    assert known(found) == {SCHEDULER, OTHER}
    found.absorb(look(3))
    assert known(found) == {SCHEDULER, OTHER}


def test_who_comes_to_the_address_of_one_that_left_is_known() -> None:
    back = WORKER._replace(pid=9, life=5)
    found = of(*hello(), shipped(SCHEDULER, 1, left(1)))
    assert known(found) == {SCHEDULER}
    found.absorb(shipped(back, 0))
    assert known(found) == {SCHEDULER, back}


def test_of_workers_that_left_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basis, "GONE", 1)
    found = of(*hello(), look(1), shipped(OTHER, 0))
    found.absorb(shipped(SCHEDULER, 1, left(1)))
    found.absorb(shipped(SCHEDULER, 2, left(2, OTHER)))
    assert list(found._gone) == [OTHER]
    assert known(found) == {SCHEDULER}


def test_places_in_stacks_are_as_they_were_told_without_a_row_for_each() -> None:
    """Many tuples would have the garbage collector stop the scheduler."""
    more = [(NODE, i, i - 1, f"f{i % 7}", "/home/me/\udce9.py", 10**12 + i) for i in range(2, 99)]
    told = (MARK, 1, "worker name", "alice \udce9")
    found = of(*hello(), shipped(WORKER, 1, told, *more))
    batch = unpacked(list(found.batches())[1])
    texts = batch["strings"]
    nodes = [(NODE, i, p, texts[n], texts[f], line) for i, p, n, f, line in rows(batch, NODE)]

    first = (NODE, 0, -1, "outer", "/home/me/etl.py", 3), (NODE, 1, 0, "inner", nodes[0][4], 9)
    assert nodes == [*first, *more]
    assert told[3] in [texts[label] for _, _, label in rows(batch, MARK)]


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """Grows by one each time that the garbage collector runs, as it does for 1,000 new objects."""
    found: list[str] = []

    def told(phase: str, info: dict[str, int]) -> None:
        found.append(phase)

    before = gc.get_threshold()
    gc.set_threshold(1_000, *before[1:])
    gc.callbacks.append(told)
    yield found
    gc.callbacks.remove(told)
    gc.set_threshold(*before)


def test_putting_a_basis_together_gives_the_garbage_collector_little_to_do(
    collections: list[str],
) -> None:
    """However many places in stacks it has: meanwhile the scheduler would stand still."""
    found = of(shipped(WORKER, 0, *((NODE, i, i - 1, "f", "a.py", i) for i in range(20_000))))
    collections.clear()
    list(found.batches())
    assert len(collections) <= 2  # it may have been about to
