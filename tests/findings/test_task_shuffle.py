"""Rule task-shuffle: shuffles and rechunks by tasks, beside what P2P would make (B42, B43)."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.utils import key_split

from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, SCHEDULER, Program
from stageprof_collectors.account.exchange import Method, kind
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.task_shuffle import RULE
from stageprof_collectors.tables.tasks import layer_of
from stageprof_runtime.event import DEPEND, LINE

TOKEN = "0" * 32


def shuffled(parts: int, *, names: tuple[str, ...] = (), tasks: int = 0) -> Recording:
    """As many partitions in and out and a square of cuts between; each task is 1 ms on its way."""
    group, split, out = names or tuple(f"{n}taskshuffle-{TOKEN}" for n in ("group-", "split-", ""))
    made = Program()
    made.rows[CLIENT].append((LINE, "taskshuffle", FILE, 12, 1))
    keys: list[tuple[str, int]] = [(f"orders-{TOKEN}", i) for i in range(parts)]
    keys += [(group, i) for i in range(parts)]
    keys += [(split, i) for i in range(tasks or parts * parts)]
    keys += [(out, i) for i in range(parts)]
    made.tasks(keys, work=0.2, type_="pandas.DataFrame", nbytes=1_000)
    rows = made.rows[SCHEDULER]
    rows[:] = [row for row in rows if row[0] != DEPEND]
    cuts = tasks or parts * parts
    for i in range(parts):
        rows.append((DEPEND, parts + i, i))
    for i in range(cuts):
        rows.append((DEPEND, 2 * parts + cuts + i // parts % parts, 2 * parts + i))
        rows.append((DEPEND, 2 * parts + i, parts + i % parts))
    return made.recording()


def test_tasks_are_counted_and_compared_with_those_of_p2p() -> None:
    found = one(RULE, shuffled(30))
    assert found.evidence["tasks"] == 30 + 900 + 30
    assert found.evidence["p2p_tasks"] == 30 + 30 + 1
    assert f"{30 + 900 + 30:,} tasks where P2P would make about 61" in found.headline
    assert 0 < found.saving_s[0] <= found.saving_s[1] < found.cost_s
    assert "shuffle by tasks" in found.headline


@pytest.mark.parametrize(("parts", "fires"), [(22, True), (21, False)])
def test_few_partitions_are_left_alone(parts: int, fires: bool) -> None:
    """22 partitions make 528 tasks, 21 make 483."""
    assert bool(asked(RULE, shuffled(parts))) == fires


def test_p2p_itself_is_not_told() -> None:
    names = (f"shuffle-transfer-{TOKEN}", f"shuffle-barrier-{TOKEN}", f"p2pshuffle-{TOKEN}")
    assert not asked(RULE, shuffled(30, names=names))


def test_rechunk_has_its_own_setting() -> None:
    names = (f"rechunk-split-{TOKEN}", f"rechunk-split-{TOKEN}", f"rechunk-merge-{TOKEN}")
    found = one(RULE, shuffled(30, names=names))
    assert "array.rechunk.method" in found.fix.code
    assert "rechunk by tasks" in found.headline


def frame(partitions: int) -> dd.DataFrame:
    whole = pd.DataFrame({"x": range(200), "y": range(200)})
    made: dd.DataFrame = dd.from_pandas(whole, npartitions=partitions)
    return made


@pytest.mark.parametrize(("partitions", "stages"), [(8, False), (40, True)])
def test_keys_of_this_dask_are_recognised(partitions: int, stages: bool) -> None:
    """Whatever Dask calls its tasks, here they are told apart."""
    graph = frame(partitions).shuffle("x", shuffle_method="tasks").optimize().__dask_graph__()
    layers = {layer_of(str(key)) for key in graph}
    mine = {name for name in layers if kind(name) == (Method.TASKS, False)}
    assert len([key for key in graph if layer_of(str(key)) in mine]) > partitions * 4
    assert any(name.startswith("stage") for name in mine) == stages
    assert not any(kind(name) for name in layers - mine)


def test_keys_of_rechunk_are_recognised() -> None:
    x = da.zeros((40, 40), chunks=(1, 40)).rechunk((40, 1), method="tasks")
    found = {kind(layer_of(str(key))) for key in x.__dask_graph__() if "zeros" not in str(key)}
    assert (Method.TASKS, True) in found
    assert {key_split(layer_of(str(key))) for key in x.__dask_graph__()} >= {"rechunk-split"}


def test_printed_code_makes_dask_use_p2p() -> None:
    found = one(RULE, shuffled(30))
    with dask.config.set():
        run(found)
        graph = frame(8).shuffle("x").optimize().__dask_graph__()
        dask.config.set({"dataframe.shuffle.method": None})
    kinds = {kind(layer_of(str(key))) for key in graph}
    assert (Method.P2P, False) in kinds
    assert (Method.TASKS, False) not in kinds
    assert np.isfinite(found.cost_s)
