"""Rule unsorted-index: graphs as Dask makes them of arrays that are indexed by positions."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from dask._task_spec import convert_legacy_graph
from dask.order import order
from dask.utils import key_split

from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, SCHEDULER, Program
from stageprof_collectors.findings.diagnosis import diagnose
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.unsorted_index import RULE
from stageprof_runtime.event import DEPEND, LINE

LENGTH, PIECE = 3_000, 100
DRAWN = np.random.default_rng(1).permutation(LENGTH)


def array(length: int = LENGTH, beside: int = 1) -> Any:
    return da.ones((length, 10 * beside), chunks=(PIECE, 10))


def recorded(collection: Any) -> Recording:
    """Its tasks one after another: 0.2 ms of work, and 1 ms on their way."""
    graph = convert_legacy_graph(collection.__dask_graph__())
    keys = sorted(graph, key=order(graph).__getitem__)
    made = Program()
    for prefix in {key_split(key) for key in keys}:
        made.rows[CLIENT].append((LINE, prefix, FILE, 12, 1))
    made.tasks(keys, work=0.2, type_="numpy.ndarray", nbytes=8_000)
    rows = made.rows[SCHEDULER]
    rows[:] = [row for row in rows if row[0] != DEPEND]
    number = {key: i for i, key in enumerate(keys)}
    for key in keys:
        needs = graph[key].dependencies
        rows += [(DEPEND, number[key], number[on]) for on in needs] or [(DEPEND, number[key], -1)]
    return made.recording()


def indexes(collection: Any) -> int:
    """How many of its tasks index, as Dask names them; those that join are of the result."""
    helpers = [key for key in collection.__dask_graph__() if key_split(key).startswith("shuffle-")]
    return len(helpers) + int(collection.npartitions)


def test_it_names_the_line_the_tasks_and_those_that_do_in_order() -> None:
    found = one(RULE, recorded(array()[DRAWN]))

    assert found.evidence["tasks"] == indexes(array()[DRAWN])
    assert (found.evidence["pieces_of_array"], found.evidence["pieces_of_result"]) == (30, 30)
    assert "An array is indexed by positions out of order at etl.py:12: 1,756" in found.headline
    assert (found.where.file, found.where.line) == (FILE, 12)
    assert 0 < found.saving_s[0] <= found.saving_s[1]


@pytest.mark.parametrize("beside", [1, 4])
@pytest.mark.parametrize("part", [0.3, 1.0])
def test_as_many_tasks_are_foretold_as_dask_makes_of_positions_in_order(
    part: float, beside: int
) -> None:
    drawn = DRAWN[: round(part * LENGTH)]
    found = recorded(array(beside=beside)[drawn]).indexing
    drawn_in_order = np.sort(np.random.default_rng(2).choice(LENGTH, len(drawn)))

    assert found is not None
    assert found.in_order == pytest.approx(indexes(array(beside=beside)[drawn_in_order]), rel=0.35)


@pytest.mark.parametrize(
    "chosen",
    [np.sort(DRAWN), np.sort(DRAWN[:900]), slice(None, None, 3)],
    ids=["all", "some", "slice"],
)
def test_positions_in_order_and_slices_are_left_alone(chosen: Any) -> None:
    assert asked(RULE, recorded(array(length=60_000)[chosen]), tasks=1) == []


def test_of_a_shuffle_larger_chunks_are_told_and_no_other_order() -> None:
    """`dask.array.shuffle` is asked for its order; each pair of pieces, in and out, is a task."""
    parts = [part.tolist() for part in np.array_split(DRAWN, 30)]
    (found,) = diagnose(recorded((array().shuffle(parts, axis=0) + 1).sum()))

    assert found.rule == "large-graph"
    assert "makes one of each pair of them" in found.fix.text
    assert "array.chunk-size" in found.fix.code


def test_a_group_by_of_a_bag_is_none() -> None:
    bag = db.from_sequence(range(2_000), npartitions=40).groupby(lambda x: x % 7, shuffle="tasks")

    assert asked(RULE, recorded(bag), tasks=1, times=0.1) == []


@pytest.mark.parametrize(("length", "fires"), [(1_600, True), (1_400, False)])
def test_few_pieces_are_left_alone(length: int, fires: bool) -> None:
    """16 pieces make 528 tasks, 14 make 406."""
    drawn = np.random.default_rng(1).permutation(length)
    assert bool(asked(RULE, recorded(array(length)[drawn]))) is fires


def test_its_limits_can_be_set() -> None:
    recording = recorded(array()[DRAWN])
    assert asked(RULE, recording, share=0.9) == []
    assert asked(RULE, recording, times=30) == []


def test_nothing_else_tells_of_the_same_tasks() -> None:
    """Neither many chunks, nor small calls for the positions, which are texts."""
    assert [found.rule for found in diagnose(recorded(array()[DRAWN]))] == [RULE.id]


def test_the_fix_gives_the_same_and_its_order() -> None:
    found = one(RULE, recorded(array()[DRAWN]))
    numbers = da.arange(LENGTH, chunks=PIECE)

    names = run(found, positions=DRAWN.tolist())
    result = numbers[names["positions"]]

    assert 4 * indexes(result) < indexes(numbers[DRAWN])
    back = result.compute(scheduler="sync")[np.argsort(names["order"])]
    assert back.tolist() == DRAWN.tolist()
