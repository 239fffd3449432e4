"""`stageprof.check` on a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import Client

import clusters
import remains
import stageprof
from check.hostile import CALLED, Large, use

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_replaced() -> Iterator[None]:
    RAN.clear()
    yield
    assert remains.of_process() == []


def note(x: int) -> int:
    RAN.append(x)
    return x


def rules(found: Any) -> list[str]:
    return [f.rule for f in found]


def test_an_embedded_frame_is_named_with_its_line_and_predicted_cost(client: Client) -> None:
    table = pd.DataFrame({"x": np.arange(2_000_000.0)})
    frame = dd.from_pandas(pd.DataFrame({"a": range(10)}), npartitions=8)
    mapped = frame.map_partitions(use, table, meta=("n", int))
    [found] = [f for f in stageprof.check(mapped) if f.rule == "embedded-object"]
    assert found.where.variable == "table"
    assert found.where.file == __file__
    assert found.evidence["object_bytes"] == pytest.approx(16_000_000, rel=0.01)
    assert found.evidence["tasks"] == 8
    assert 0 < found.saving_s[0] < found.cost_s < found.saving_s[1]


def test_the_code_goes_with_the_call_that_has_the_object(client: Client) -> None:
    """A `delayed` alone makes `map_partitions` raise, and `client.map` hand it on as it is."""
    table = pd.DataFrame({"x": np.arange(2_000_000.0)})
    frame = dd.from_pandas(pd.DataFrame({"a": range(10)}), npartitions=8)
    ways: dict[str, Any] = {
        "map_partitions needs meta": frame.map_partitions(use, table, meta=("n", int)),
        "a future: it travels once": lambda: client.map(use, range(8), i=table),
        "@cache": lambda: delayed(use)(table).compute(scheduler="processes"),
    }
    for printed, way in ways.items():
        [found] = [f for f in stageprof.check(way) if f.rule == "embedded-object"]
        assert printed in found.fix.code
    [found] = [
        f for f in stageprof.check(lambda: client.submit(use, table)) if f.rule == "embedded-object"
    ]
    assert "delayed" not in found.fix.text


def test_what_a_map_gives_by_name_is_in_the_code_for_it(client: Client) -> None:
    found = stageprof.check(lambda: client.map(use, range(3_000), i=2))
    [code] = [f.fix.code for f in found if f.rule == "large-graph"]
    assert "[use(x, **given) for x in inputs]" in code
    assert "client.map(use_batch, batches, i=i)" in code


def test_what_is_wrapped_is_not_told_of_and_what_is_cut_travels_once(client: Client) -> None:
    """The fix of the finding is none; pieces of an array are no copies of it."""
    table = np.zeros(4_000_000)
    bad = [delayed(use)(table, i) for i in range(8)]
    shared = delayed(table, traverse=False)
    fixed = [delayed(use)(shared, i) for i in range(8)]
    [found] = [f for f in stageprof.check(bad) if f.rule == "embedded-object"]
    assert found.evidence["sent_bytes"] == 8 * 32_000_000
    assert not [f for f in stageprof.check(fixed) if f.rule == "embedded-object"]
    cut = da.from_array(table, chunks=500_000)
    assert not [f for f in stageprof.check(cut.sum()) if f.rule == "embedded-object"]


def test_the_predicted_cost_of_the_graph_is_told_by_stage(client: Client) -> None:
    [found] = [
        f for f in stageprof.check([delayed(note)(i) for i in range(3000)]) if f.stage is None
    ]
    parts = [found.evidence[f"{stage}_s"] for stage in list(stageprof.Stage)[:6]]
    assert sum(map(float, parts)) == pytest.approx(found.cost_s, rel=0.01)


@pytest.mark.parametrize("how", ["submit", "map", "compute", "persist"])
def test_no_way_into_a_cluster_runs_anything(how: str, client: Client) -> None:
    ways = {
        "submit": lambda: client.submit(use, 1, pure=False),
        "map": lambda: client.map(use, range(20), pure=False),
        "compute": lambda: client.compute(delayed(use)(1)),
        "persist": lambda: client.persist(da.ones(10, chunks=5)),
    }
    assert stageprof.check(ways[how]).found.graphs == 1
    assert not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))


def test_what_a_helper_made_has_the_name_that_it_had_there(client: Client) -> None:
    def built() -> Any:
        weights = np.zeros(3_000_000)
        return delayed(use)(weights)

    [found] = [f for f in stageprof.check(lambda: built().compute()) if f.rule == "embedded-object"]
    assert found.where.variable == "weights"


def test_an_async_program_is_stopped_too(client: Client) -> None:
    address = clusters.scheduler_of(client)

    async def program() -> None:
        async with Client(address, asynchronous=True) as mine:
            await mine.submit(use, 1, pure=False)

    checked = stageprof.check(lambda: asyncio.run(program()))
    assert checked.found.graphs == 1
    assert any("asynchronous" in text for text in checked.not_looked_at)


def test_no_method_of_a_hostile_object_is_called(client: Client) -> None:
    thing = Large()
    call = delayed(use)(thing)
    CALLED.clear()
    found = stageprof.check(call)
    assert CALLED == []
    assert "embedded-object" in rules(found)
    assert any("takes to pickle" in text for text in found.not_looked_at)
    thing.__dict__.clear()


def test_a_container_that_holds_itself_ends(client: Client) -> None:
    loop: list[Any] = [np.zeros(10)]
    loop.append(loop)
    assert stageprof.check({"a": delayed(use)(1)}) is not None
    graph = {"x": (use, loop)}
    stageprof.check(lambda: client.get(graph, "x"))


def test_a_million_small_objects_are_counted_from_some(client: Client) -> None:
    things = [{"a": i} for i in range(200_000)]
    checked = stageprof.check(delayed(use, traverse=False)(delayed(things, traverse=False)))
    assert checked.found.seconds < 30
