"""What a run needed is recorded as it was, in few rows, and read back by row."""

from __future__ import annotations

import itertools
from typing import Any

import dask
import pytest
from distributed import Client

import clusters
from replay.handmade import HandMade
from replay.programs import nap, sleep
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.cost import cost_of
from stageprof_runtime.event import DEPEND
from stageprof_runtime.needs import MOST, needed, spread
from stageprof_runtime.stage import STEP
from truth import record


def rows(run: int, cause: int, runs: list[Any]) -> list[tuple[int, ...]]:
    found: list[Any] = []
    needed(found.append, run, cause, runs)
    return [row[1:] for row in found if row[0] == DEPEND]


def test_a_simple_graph_costs_no_row() -> None:
    assert rows(5, 4, [4]) == []
    assert rows(5, -1, []) == []
    assert rows(5, -1, [None]) == []


def test_what_is_not_its_cause_alone_is_told() -> None:
    assert rows(5, 4, [3]) == [(5, 3)]
    assert rows(5, 4, [3, 4, None]) == [(5, 3), (5, 4)]
    assert rows(5, -1, [3]) == [(5, 3)]
    assert rows(5, 4, []) == [(5, -1)]
    assert rows(5, 4, [None]) == [(5, -1)]


def test_of_many_needs_some_are_taken_evenly() -> None:
    assert spread({1, 2, 3}) == [1, 2, 3]
    assert spread(()) == []
    many = spread(range(100_000))
    assert len(many) == MOST
    assert max(b - a for a, b in itertools.pairwise(many)) == 100
    assert len(spread(range(100_000), 0)) == 1


def needs_by_key(recording: Recording) -> dict[str, set[str]]:
    """Prefix and number of each task -> those of what it needed."""
    timeline = recording.timeline
    keys = recording.store.keys(timeline.runs["key"])
    found = timeline.depends
    return {
        keys[i]: {keys[j] for j in found.on[a:b].tolist()}
        for i, (a, b) in enumerate(zip(found.first, found.first[1:], strict=False))
    }


def program() -> dict[str, set[str]]:
    """Six roots, two that need three of them each, and one that needs both; its needs by key."""
    root, inner = dask.delayed(sleep, pure=False), dask.delayed(nap, pure=False)
    roots = [root(0.01, dask_key_name=f"root-{i}") for i in range(6)]
    pair = [inner(0.01, *roots[3 * i : 3 * i + 3], dask_key_name=f"pair-{i}") for i in range(2)]
    inner(0.01, *pair, dask_key_name="top").compute()
    return {
        **{f"root-{i}": set() for i in range(6)},
        "pair-0": {"root-0", "root-1", "root-2"},
        "pair-1": {"root-3", "root-4", "root-5"},
        "top": {"pair-0", "pair-1"},
    }


@pytest.mark.smoke
def test_needs_are_read_back_from_a_cluster() -> None:
    with clusters.local(2, 1):
        recording = record(program)

        assert needs_by_key(recording) == program()


@pytest.mark.smoke
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_needs_are_read_back_from_local_schedulers(scheduler: str) -> None:
    with dask.config.set(scheduler=scheduler, num_workers=2):
        recording = record(program)

        assert needs_by_key(recording) == program()


def test_a_task_that_needs_very_many_has_bounded_rows() -> None:
    def wide(client: Client) -> None:
        futures = client.map(abs, range(1500), pure=False)
        assert client.submit(sum, futures).result() == sum(range(1500))

    with clusters.local(1, 2) as client:
        recording = record(lambda: wide(client))
    found = recording.timeline.depends
    last = len(found.first) - 2
    needs = found.on[found.first[last] : found.first[last + 1]]
    assert 500 <= len(needs) <= MOST + 1
    assert not found.queued[last]


def test_graphs_in_flight_are_matched_with_their_own_hand_overs() -> None:
    made = HandMade()
    made.graph(10, 40, 41, wanted=1)
    made.graph(20, 50, 51, wanted=3)
    made.graph(30, 60, 61, wanted=1)
    recording = made.recording(100)

    graphs = recording.timeline.graphs
    assert [round(g.submitted / 1e6) - 1000 for g in graphs] == [10, 20, 30]
    assert [g.wanted for g in graphs] == [1, 3, 1]
    assert recording.computations()["submitted_s"].tolist() == pytest.approx([0.01, 0.02, 0.03])


def test_a_graph_whose_hand_over_is_unknown_has_none() -> None:
    made = HandMade()
    made.graph(90, 40, 41, wanted=2)
    recording = made.recording(100)

    assert [g.submit for g in recording.timeline.graphs] == [None]


def test_a_cost_is_seconds_of_the_account_by_step_and_run() -> None:
    made = HandMade(workers=1)
    made.span("build", 0, 20)
    g = made.graph(20, 20, 20)
    a = made.run(0, 20, 60, cause=-1 - g)
    b = made.run(0, 60, 100, cause=a, wanted=True)
    made.wait(20, 100, b, 100)
    recording = made.recording(100)

    assert cost_of(recording) == pytest.approx(recording.wall)
    assert cost_of(recording, steps=[STEP["build"]]) == pytest.approx(0.02)
    assert cost_of(recording, runs=[0]) == pytest.approx(0.04)
    assert cost_of(recording, steps=[STEP["compute"]], runs=[0, 1]) == pytest.approx(0.08)
    assert cost_of(recording, steps=[STEP["build"]], runs=[0]) == 0
