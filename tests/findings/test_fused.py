"""What tasks begin with whose layer Dask fused with others: pieces that nobody is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask._expr import HLGExpr

import stageprof
from findings.asking import one
from stageprof_collectors.findings.fused import begun
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.large_graph import RULE
from stageprof_runtime.chains import Link, links
from stageprof_runtime.plan import chained, plan_of

#: Bytes of a piece: 400 rows of 64 numbers are made, row by row.
ROW = 64 * 8


def summed() -> da.Array:
    """400 pieces, each of which is made, changed and added up in one task."""
    x = da.random.default_rng(1).random((400, 64), chunks=(1, 64))  # made here
    total: da.Array = ((x + 1) * 2).sum()
    return total


def averaged() -> da.Array:
    """The same with tasks that return no array, but what a mean is made of."""
    x = da.random.default_rng(1).random((400, 64), chunks=(1, 64))  # averaged here
    mean: da.Array = (x + 1).mean()
    return mean


def opened() -> da.Array:
    """400 pieces of an array of the program's."""
    x = da.from_array(np.ones((400, 64)), chunks=(1, 64))  # opened here
    total: da.Array = (x + 1).sum()
    return total


def line_of(program: Callable[[], da.Array], words: str) -> int:
    lines = Path(program.__code__.co_filename).read_text().splitlines()
    begin = program.__code__.co_firstlineno
    return next(n for n, line in enumerate(lines[begin:], start=begin + 1) if words in line)


def recorded(program: Callable[[], da.Array]) -> Recording:
    with stageprof.profile(gil=False) as prof:
        program().compute()
    return prof.recording


@pytest.mark.cluster
@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("program", "words"),
    [(summed, "made here"), (averaged, "averaged here"), (opened, "opened here")],
)
def test_pieces_that_are_reduced_where_they_are_made_are_named_with_their_size_and_line(
    program: Callable[[], da.Array], words: str
) -> None:
    """A sum's eight bytes were taken for a piece, and 200 times as much for a good size."""
    found = one(RULE, recorded(program), tasks=150)

    assert found.evidence["piece_bytes"] == ROW
    assert f"at test_fused.py:{line_of(program, words)}" in found.fix.text


def test_a_local_scheduler_is_told_of_them_too() -> None:
    with dask.config.set(scheduler="sync"):
        found = one(RULE, recorded(summed), tasks=150)

    assert found.evidence["piece_bytes"] == ROW
    assert f"at test_fused.py:{line_of(summed, 'made here')}" in found.fix.text


def test_operations_of_a_loop_are_followed_to_the_last() -> None:
    x = da.ones((400, 64), chunks=(1, 64))
    for i in range(60):
        x = x + i
    assert _links(x.sum(axis=1))[-1].name.startswith("sum")


def test_what_was_kept_ran_by_itself_and_what_follows_begins_after_it() -> None:
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        x = da.random.default_rng(1).random((400, 64), chunks=(1, 64)).persist()
        ((x + 1) * 2).sum().compute()

    (found,) = begun(prof.recording).values()
    assert found.row.prefix == "add"
    assert (found.number, found.nbytes) == (400, ROW)


def _links(array: da.Array) -> list[Link]:
    return list(links(array.dask))


def test_a_chain_ends_where_two_layers_need_one() -> None:
    x = da.ones((400, 4), chunks=(1, 4)) + 1
    both = da.concatenate([x, x * 2])
    assert [link.name.partition("-")[0] for link in _links(both)] == ["ones_like", "add"]


def test_few_pieces_are_not_told() -> None:
    assert _links(da.ones((40, 4), chunks=(1, 4)) + 1) == []
    assert _links(da.ones((40, 4), chunks=(1, 4))) == []


def test_chunks_of_unknown_size_are_not_told() -> None:
    x = da.ones((400, 4), chunks=(1, 4))
    assert _links(x[x[:, 0] > 0] + 1) == []


def test_a_plan_tells_of_the_graphs_within() -> None:
    x = da.ones((400, 4), chunks=(1, 4)) + 1
    told = list(chained(plan_of(HLGExpr(x.dask))))
    assert [(link.number, link.nbytes) for link in told] == [(400, 32)] * 2
