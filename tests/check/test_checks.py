"""Each check by itself, on plans made by hand: it fires, it is silent after the fix."""

from __future__ import annotations

import math
import operator
from collections import Counter
from typing import Any

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from dask.highlevelgraph import HighLevelGraph

from check.planned import GB, array, ask, cluster, plan, worker
from stageprof_collectors.findings.calling import Calling
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.preflight.plan import Layer, Plan, Watch
from stageprof_collectors.preflight.rates import Rates
from stageprof_collectors.preflight.reading import read
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.collection import Facts
from stageprof_runtime.handover import CLUSTER, THREADS, Trained
from stageprof_runtime.loaded import SLICE, STORED, Unused
from stageprof_runtime.naming import Origin
from stageprof_runtime.stage import Stage

# -- the cluster ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "cpus", "severity"),
    [(1, 8, Severity.MODERATE), (3, 8, Severity.NOTE), (4, 8, None), (4, 0, None)],
)
def test_threads_below_the_cpus_of_a_machine(
    threads: int, cpus: int, severity: Severity | None
) -> None:
    workers = [worker(i, threads=threads, cpus=cpus) for i in range(2)]
    found = ask("threads-below-cpus", plan(cluster=cluster(*workers)))
    assert [f.severity for f in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("threads", "cpus", "workers", "each"),
    [((1, 1, 1), 4, 4, 1), ((2, 2, 2), 8, 4, 2), ((1, 1), 8, 2, 4), ((3, 3, 3), 10, 5, 2)],
)
def test_what_is_printed_has_a_thread_for_each_cpu(
    threads: tuple[int, ...], cpus: int, workers: int, each: int
) -> None:
    """Three workers of a thread on four CPUs were to become three workers of a thread."""
    there = [worker(i, threads=n, cpus=cpus) for i, n in enumerate(threads)]
    [here] = ask("threads-below-cpus", plan(cluster=cluster(*there, local=True)))
    [elsewhere] = ask("threads-below-cpus", plan(cluster=cluster(*there)))

    assert f"n_workers={workers}, threads_per_worker={each})" in here.fix.code
    assert f"--nworkers {workers} --nthreads {each}" in elsewhere.fix.code


def test_workers_that_were_asked_for_and_are_not_there() -> None:
    late = plan(cluster=cluster(late=2))
    [found] = ask("late-workers", late)
    assert "2 of 4 workers" in found.headline
    assert "wait_for_workers(4)" in found.fix.code
    assert ask("threads-below-cpus", late) == []  # the others bring threads
    assert ask("late-workers", plan(cluster=cluster())) == []


@pytest.mark.parametrize(
    ("package", "severity"), [("pandas", Severity.MODERATE), ("lz4", Severity.NOTE)]
)
def test_versions_that_differ(package: str, severity: Severity) -> None:
    told = {package: Counter({"1.0": 3, "2.0": 1}), "dask": Counter({"2026.8.0": 4})}
    [found] = ask("versions-differ", plan(cluster=cluster(versions=told)))
    assert found.severity == severity
    assert f"{package} 1.0 (3), 2.0 (1)" in found.headline
    del told[package]["2.0"]
    assert ask("versions-differ", plan(cluster=cluster(versions=told))) == []


# -- arrays in files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "severity"),
    [(1_400, None), (1_500, Severity.MODERATE), (9_900, Severity.MODERATE), (10_000, "serious")],
)
def test_chunks_that_cut_across_those_of_a_file(total: int, severity: Severity | None) -> None:
    label = "40x40 4x40 40x4"
    rows = [Unused(name, STORED, label, "array-1a2b", 1_000, total) for name in ("a", "b")]
    found = ask("misaligned-chunks", plan(loaded=[Unused("c", SLICE, "", "", 1, 100), *rows]))
    assert [f.severity for f in found] == ([severity] if severity else [])


# -- arrays that are indexed by positions ----------------------------------------------------------

DRAWN = np.random.default_rng(1).permutation(3_000)


def indexed(positions: Any, scheduler: str = CLUSTER) -> Plan:
    """The plan of an array of 30 pieces, indexed by positions."""
    made = plan()
    made.scheduler = scheduler
    graph = da.ones(3_000, chunks=100)[positions].__dask_graph__()
    read(graph, made, lambda _: ("train.py", 7), Watch(60))
    return made


def test_positions_out_of_order_are_told_instead_of_many_tasks() -> None:
    made = indexed(DRAWN)
    [found] = ask("unsorted-index", made)

    assert found.evidence["tasks"] == max(layer.tasks for layer in made.layers)
    in_order = max(layer.tasks for layer in indexed(np.sort(DRAWN[:2_900])).layers)
    assert found.evidence["tasks_in_order"] == pytest.approx(in_order, rel=0.35)
    assert "out of order at train.py:7" in found.headline
    assert ask("large-graph", made) == []


@pytest.mark.parametrize(
    "positions",
    [np.sort(DRAWN[:2_000]), DRAWN < 2_000, slice(None, None, 2)],
    ids=["in order", "mask", "slice"],
)
def test_positions_in_order_masks_and_slices_are_no_finding(positions: Any) -> None:
    assert ask("unsorted-index", indexed(positions)) == []


def test_what_is_shuffled_is_in_the_order_that_was_asked_for() -> None:
    made = plan()
    parts = [part.tolist() for part in np.array_split(DRAWN, 30)]
    array = da.ones(3_000, chunks=100).shuffle(parts, axis=0)
    read(array.__dask_graph__(), made, lambda _: ("train.py", 7), Watch(60))
    assert ask("unsorted-index", made) == []
    assert len(ask("large-graph", made)) == 1


def test_of_positions_on_threads_nothing_is_said() -> None:
    assert ask("unsorted-index", indexed(DRAWN, THREADS)) == []


# -- trainings ------------------------------------------------------------------------------------


def trained(**facts: Any) -> Plan:
    known: dict[str, Any] = {
        "name": "x-1",
        "type": "Array",
        "pieces": 8,
        "column_pieces": 1,
        "rows": 800,
        "width": 9,
    }
    data = Trained("xgboost.dask.train", Facts(**(known | facts)), Origin("x", "train.py", 5))
    return plan(trained=data, cluster=cluster())


def test_columns_in_pieces_go_into_a_training() -> None:
    [found] = ask("column-chunks-for-training", trained(column_pieces=3))
    assert found.severity == Severity.SERIOUS
    assert "x.rechunk({1: -1})" in found.fix.code
    [merged] = ask("column-chunks-for-training", trained(merged=3))
    assert merged.severity == Severity.MODERATE
    assert ask("column-chunks-for-training", trained()) == []


def test_fewer_pieces_than_threads_go_into_a_training() -> None:
    [found] = ask("pieces-per-thread", trained(pieces=1))
    assert "1 piece for 2 threads" in found.headline
    assert "spread(x" in found.fix.code
    assert ask("pieces-per-thread", trained(pieces=2)) == []


# -- the graph ------------------------------------------------------------------------------------


def test_of_a_data_frame_what_reads_it_is_named() -> None:
    """The partitions of all others are its; and the line of many of them nobody knows."""
    steps = [Layer(f"operation-{n}", "operation", 2_000, Collection.FRAME) for n in range(2)]
    read = Layer("read-csv-1", "read-csv", 2_000, Collection.FRAME, -1, -1, "etl.py", 12, True)
    [found] = ask("large-graph", plan(*steps, read, cluster=cluster()))

    assert "most of `read-csv` at etl.py:12" in found.headline


def test_pieces_that_are_large_already_are_not_too_many() -> None:
    small, large = array(GB, 10_000), array(2_000 * GB, 10_000)
    assert len(ask("large-graph", plan(small, cluster=cluster()))) == 1
    assert ask("large-graph", plan(large, cluster=cluster())) == []


def read_by(path: str) -> pd.DataFrame:
    return pd.DataFrame({"x": [len(path)]})


def test_partitions_of_unknown_size_get_no_code_that_their_reader_does_not_take() -> None:
    """`npartitions = 1200` was printed, which none of those takes that do not tell the size."""
    made = plan(cluster=cluster())
    ddf = dd.from_map(read_by, ["a"] * 12_000, meta=read_by(""))
    read(ddf.x.sum().optimize().expr, made, lambda _: ("", 0), Watch(60))
    [found] = ask("large-graph", made)

    assert found.fix.code == ""
    assert "whether your memory has room for it" in found.fix.text
    assert "calls of `from_map` and `from_delayed` can be given 10 inputs each" in found.fix.text


def test_partitions_of_a_bag_are_no_calls_of_delayed() -> None:
    made = plan(cluster=cluster())
    bag = db.from_sequence(range(20_000), npartitions=20_000).map(abs)
    read(bag.sum().__dask_graph__(), made, lambda _: ("", 0), Watch(60))
    [found] = ask("large-graph", made)

    assert "bag = bag.repartition(npartitions=2000)" in found.fix.code
    assert "delayed" not in found.fix.code
    assert "whether your memory has room" in found.fix.text


def test_calls_of_delayed_are_no_bag() -> None:
    made = plan(cluster=cluster())
    calls = [delayed(abs)(i) for i in range(3_000)]
    graph = HighLevelGraph.merge(*[each.__dask_graph__() for each in calls])
    read(graph, made, lambda _: ("", 0), Watch(60))
    assert not any(layer.bag for layer in made.layers)
    assert "dask.delayed(abs_batch)" in ask("large-graph", made)[0].fix.code


def test_calls_of_several_arguments_get_code_that_gives_them_all() -> None:
    """`[add(x) for x in inputs]` was printed, which lacks an argument."""
    made = plan(cluster=cluster())
    calls = [delayed(operator.add)(i, i + 1) for i in range(3_000)]
    graph = HighLevelGraph.merge(*[each.__dask_graph__() for each in calls])
    read(graph, made, lambda _: ("", 0), Watch(60))
    [found] = ask("large-graph", made)
    assert "[add(*x) for x in inputs]" in found.fix.code
    assert "the tuple of all that one call is given" in found.fix.code


def test_calls_by_a_client_get_code_that_calls_by_a_client() -> None:
    calls = Layer(
        "add-1", "add", 3_000, Collection.CALLS, calling=Calling(futures=True, several=True)
    )
    code = ask("large-graph", plan(calls, cluster=cluster()))[0].fix.code
    assert "client.map(add_batch, batches)" in code
    assert "[add(*x) for x in inputs]" in code
    assert "delayed" not in code


def test_what_calls_are_given_by_name_is_in_the_code_for_them() -> None:
    made = plan(cluster=cluster())
    calls = [delayed(int)("11", base=8) for _ in range(3_000)]
    graph = HighLevelGraph.merge(*[each.__dask_graph__() for each in calls])
    read(graph, made, lambda _: ("", 0), Watch(60))
    code = ask("large-graph", made)[0].fix.code
    assert "def int_batch(inputs, **given):" in code
    assert "[int(x, **given) for x in inputs]" in code
    assert "dask.delayed(int_batch)(batch, base=base) for" in code


@pytest.mark.parametrize("name", ["a-b", "class", 'x="\n"'])
def test_names_that_code_cannot_have_are_not_in_it(name: str) -> None:
    made = plan(cluster=cluster())
    calls = [delayed(dict)([], **{name: i}) for i in range(3_000)]
    graph = HighLevelGraph.merge(*[each.__dask_graph__() for each in calls])
    read(graph, made, lambda _: ("", 0), Watch(60))
    compile(ask("large-graph", made)[0].fix.code, "printed", "exec")


def test_tiny_results_of_large_pieces_may_not_grow() -> None:
    large = array(400 * GB, 4_000)
    tiny = Layer("sum-2", "sum", 10_000, Collection.ARRAY, 500, 5_000_000, "a.py", 4)
    assert len(ask("large-graph", plan(tiny, cluster=cluster()))) == 1
    assert ask("large-graph", plan(large, tiny, cluster=cluster())) == []


def test_without_a_recording_nothing_is_sure_to_be_saved_with_one_it_is() -> None:
    made = plan(array(GB, 10_000), cluster=cluster())
    [guessed] = ask("large-graph", made)
    assert guessed.saving_s[0] == 0
    made.rates = Rates({Stage.SCHEDULING: (1e-3, 2e-3)}, wall_s=40.0, source="measured")
    [known] = ask("large-graph", made)
    assert known.saving_s == pytest.approx((10.0, 20.0), rel=0.02)
    assert known.severity == Severity.CRITICAL


def test_what_is_not_known_is_no_number() -> None:
    [found] = ask("late-workers", plan(cluster=cluster(late=1)))
    assert math.isnan(found.cost_s)
    assert all(math.isnan(s) for s in found.saving_s)
