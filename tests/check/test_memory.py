"""What a worker will have to hold at least, of plans made by hand and of what is handed over."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask._expr import FinalizeCompute
from dask.base import collections_to_expr

import stageprof
from check.planned import GB, array, ask, cluster, plan
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.preflight import checkup
from stageprof_collectors.preflight.plan import Plan, Watch
from stageprof_collectors.preflight.reading import read


@pytest.mark.parametrize(
    ("nbytes", "severity"), [(9 * GB, Severity.SERIOUS), (5.4 * GB, "moderate")]
)
def test_results_that_do_not_fit(nbytes: float, severity: str) -> None:
    made = plan(array(int(nbytes), 100), outputs=frozenset(["x-1"]), cluster=cluster())
    [found] = ask("memory-near-limit", made)
    assert found.severity == severity
    assert float(found.evidence["needed_bytes"]) > nbytes / 2


def test_a_single_large_piece_keeps_a_single_thread_busy() -> None:
    """`da.random.random(n, chunks=-1)`: each of a worker's threads was to have two of it."""
    made = plan(array(GB // 2, 1), outputs=frozenset(["x-1"]), cluster=cluster())
    assert ask("memory-near-limit", made) == []


def test_of_a_frame_whose_head_is_asked_for_a_part_is_read() -> None:
    frame = pd.DataFrame({"x": np.arange(100_000.0), "y": np.arange(100_000.0)})
    ddf, made = dd.from_pandas(frame, npartitions=100), plan()
    read(ddf.head(compute=False).optimize().expr, made, lambda _: ("", 0), Watch(10))
    pieces = [layer.piece_bytes for layer in made.layers if layer.piece_bytes > 0]
    assert max(pieces) == pytest.approx(frame.memory_usage().sum() / 100, rel=0.1)


def test_no_more_memory_is_printed_than_the_machine_has() -> None:
    made = plan(array(9 * GB, 100), outputs=frozenset(["x-1"]), cluster=cluster(machine=8 * GB))
    [found] = ask("memory-near-limit", made)
    assert found.fix.code == ""
    assert "2 workers with 8.1 GB each are more than this machine has, 8.0 GB" in found.fix.text
    made.cluster = cluster(machine=20 * GB, local=True)
    assert "memory_limit=" in ask("memory-near-limit", made)[0].fix.code


def test_a_cluster_elsewhere_is_not_replaced_by_one_here() -> None:
    """`LocalCluster(...)` was printed for workers of other machines."""
    made = plan(array(9 * GB, 100), outputs=frozenset(["x-1"]), cluster=cluster())
    [found] = ask("memory-near-limit", made)
    assert "LocalCluster" not in found.fix.code
    assert "# dask worker SCHEDULER --nthreads 1 --memory-limit 8.1GB" in found.fix.code


def handed_over(*collections: Any, compute: bool) -> Plan:
    """The plan of what `compute` or `persist` hands over, on two workers of 4 GB."""
    expr = collections_to_expr(collections)
    made = plan(cluster=cluster())
    whole = FinalizeCompute(expr) if compute else expr
    read(whole.optimize(), made, lambda _: ("", 0), Watch(60))
    return made


BIG = da.ones((40_000, 40_000), chunks=2_000)  # 12.8 GB


@pytest.mark.parametrize("compute", [True, False])
@pytest.mark.parametrize("also", [BIG.sum(), BIG + 1])
def test_a_result_that_another_one_needs_is_asked_for_nevertheless(
    also: Any, *, compute: bool
) -> None:
    """Only what nothing needs was: nothing was found of 12.8 GB on workers of 8 GB."""
    made = handed_over(BIG, also, compute=compute)
    [found] = ask("memory-near-limit", made)

    asked = BIG.nbytes + also.nbytes
    assert found.severity == Severity.SERIOUS
    assert found.evidence["results_bytes"] == (BIG.nbytes if compute else asked // 2)


@pytest.mark.parametrize("also", [BIG.sum(), BIG + 1])
def test_a_collection_that_another_one_needs_is_asked_for_nevertheless(
    also: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check([x, x.sum()])` said nothing, though `check([x])` did."""
    monkeypatch.setattr(checkup, "_seen", lambda _, plan: setattr(plan, "cluster", cluster()))
    monkeypatch.setattr(checkup.Looking, "_asked", lambda *_: None)
    checked = stageprof.check([BIG, also], client=object())
    [found] = [f for f in checked if f.rule == "memory-near-limit"]
    assert found.evidence["results_bytes"] == (BIG.nbytes + also.nbytes) // 2


def test_of_a_sum_alone_its_array_is_not_asked_for() -> None:
    assert ask("memory-near-limit", handed_over(BIG.sum(), compute=True)) == []


def test_an_array_that_is_computed_is_put_together_on_one_worker() -> None:
    """It was spread over all: 3.2 GB on two workers of 4 GB were no finding."""
    array = da.ones((20_000, 20_000), chunks=2_000)
    [found] = ask("memory-near-limit", handed_over(array, compute=True))

    assert found.evidence["results_bytes"] == found.evidence["pieces_bytes"] == array.nbytes
    assert "one task on one worker" in found.fix.text
    assert ask("memory-near-limit", handed_over(array, compute=False)) == []


def test_a_single_piece_is_not_put_together() -> None:
    assert handed_over(da.ones(GB // 4, chunks=-1), compute=True).joined
    assert ask("memory-near-limit", handed_over(da.ones(GB // 4, chunks=-1), compute=True)) == []


@pytest.mark.parametrize(
    ("array", "held"),
    [
        (da.random.random((40_000, 10_000), chunks=10_000).sum(), 1),
        (da.ones((40_000, 10_000), chunks=10_000).mean(), 1),
        ((da.ones((40_000, 10_000), chunks=10_000) + 1).sum(), 2),
        (da.ones((40_000, 10_000), chunks=10_000) + 1, 2),
        (da.ones((40_000, 10_000), chunks=10_000), 1),
    ],
)
def test_a_piece_that_is_made_of_nothing_or_reduced_is_alone(array: Any, held: int) -> None:
    """The sum of a piece of 800 MB has 8 bytes; it was to have 800 MB again."""
    made = handed_over(array, compute=True)
    most = max(layer.held * layer.piece_bytes for layer in made.layers)
    assert most == held * 800_000_000


def test_results_that_fit_and_results_that_nobody_asks_for_are_no_finding() -> None:
    small = plan(array(GB, 100), outputs=frozenset(["x-1"]), cluster=cluster())
    assert ask("memory-near-limit", small) == []
    assert ask("memory-near-limit", plan(array(9 * GB, 1000), cluster=cluster())) == []
