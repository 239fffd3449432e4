"""The rule unfused-frame: operations on data frames that Dask can fuse and does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.base import collections_to_expr

import stageprof
from findings.asking import asked, one, run
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import large_graph
from stageprof_collectors.rules.unfused_frame import RULE
from stageprof_runtime.plan import plan_of
from stageprof_runtime.unfused import unfused

PARTS = 20


def part(number: int) -> pd.DataFrame:
    random = np.random.default_rng(number)
    return pd.DataFrame({"a": random.random(50), "b": random.integers(0, 5, 50)})


def frame(parts: int = PARTS) -> Any:
    made = dd.from_map(part, range(parts), meta=part(0).head(0))
    made["c"] = made["a"] * 2 + made["b"]
    return made


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x["c"].sum(),
    "diamond": lambda x: x[x["b"] > 2]["c"].max(),
    "mean": lambda x: x.mean(),
    "groupby": lambda x: x.groupby("b")["c"].sum(),
    "frame": lambda x: x[["c"]] + 1,
    "merge": lambda x: x.merge(x.assign(d=1), on="b", shuffle_method="tasks")["d"].sum(),
    "broadcast": lambda x: (x["c"] - x["c"].mean()).sum(),
    "partly": lambda x: x.optimize()[["c", "b"]].max(),
    "shuffled": lambda x: (x.optimize().shuffle("b", shuffle_method="tasks")["c"] + 1).sum(),
}


def tasks_left(collection: Any) -> int:
    """Tasks of a computation if all that is told to be unfused were fused."""
    plan = collections_to_expr([collection]).optimize()
    layers = Counter(key[0] for key in plan.__dask_graph__() if isinstance(key, tuple))
    told = [(left.name, left.by_name) for left in unfused(plan_of(plan))]
    alike = [name for name, last in told if name != last and layers[name] == layers[last]]
    return sum(layers.values()) - sum(layers[name] for name in alike)


@pytest.mark.parametrize("name", PROGRAMS)
def test_those_are_told_that_dask_would_fuse(name: str) -> None:
    collection = PROGRAMS[name](frame())
    graph = collection.optimize().__dask_graph__()
    by_dask = sum(isinstance(key, tuple) for key in graph)
    aliases = Counter(type(task).__name__ for task in graph.values())["Alias"]
    # Dask also fuses what has one partition with what that is broadcast to.
    assert by_dask - aliases <= tasks_left(collection) <= by_dask + 1


def test_what_is_fused_is_not_told() -> None:
    plan = frame()["c"].sum().expr.optimize(fuse=True)
    assert not list(unfused(plan_of(plan)))


def test_what_is_computed_together_is_not_told() -> None:
    """Fused one by one, each would read for itself what they share."""
    made = frame()
    plan = collections_to_expr([made["c"].sum(), made["c"].max()]).optimize()
    assert not list(unfused(plan_of(plan)))


def test_what_is_computed_together_and_shares_data_only_is_told() -> None:
    made = frame().persist(scheduler="sync")
    parts = [(made["c"] * 2 + 1).sum(), (made["b"] - 1).max()]
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        expected = dask.compute(*parts)

    found = one(RULE, prof.recording, tasks=50, share=0)
    assert found.evidence["fused_tasks"] == 2 * PARTS
    names = {"dask": dask, "frames": parts}
    last = found.fix.code.splitlines()[-1]
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        assert eval(last.partition(": ")[2], names) == expected
    assert len(prof.recording.tasks()) <= 3 * PARTS + 4  # the data are tasks, too


def test_data_that_are_in_the_graph_are_left_alone() -> None:
    made = dd.from_pandas(part(0), npartitions=2)
    plan = collections_to_expr([made["a"].sum()]).optimize()
    told = {left.name.partition("-")[0] for left in unfused(plan_of(plan))}
    assert "from_pandas" not in told


def recorded() -> Recording:
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        frame()["c"].sum().compute()
    return prof.recording


def test_the_finding_says_how_many_tasks_would_be_left() -> None:
    found = one(RULE, recorded(), tasks=50, share=0)
    assert found.evidence["fused_tasks"] == PARTS
    assert found.evidence["tasks"] == len(frame()["c"].sum().optimize(fuse=False).dask) - 1
    assert f"{PARTS} in place of" in found.fix.text
    assert found.where.file == __file__


def test_the_printed_code_leaves_so_many_and_gives_the_same() -> None:
    total = frame()["c"].sum()
    found = one(RULE, recorded(), tasks=50, share=0)
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        printed = run(found, frame=total)
    assert printed["result"] == total.compute(scheduler="sync")
    assert len(prof.recording.tasks()) <= PARTS + 2
    assert not asked(RULE, prof.recording, tasks=1, share=0)


def test_partitions_are_not_too_many_where_only_the_tasks_of_each_are() -> None:
    assert not asked(large_graph.RULE, recorded(), tasks=50, share=0)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own
def test_a_written_frame_may_be_fused_too(tmp_path: Path) -> None:
    """As the text says: `optimize()` is the last step before what computes."""
    frame(2).optimize().to_parquet(tmp_path / "one")
    frame(2).to_parquet(tmp_path / "other")
    one_, other = (pd.read_parquet(tmp_path / name) for name in ("one", "other"))
    pd.testing.assert_frame_equal(one_, other)
