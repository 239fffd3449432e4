"""Rule embedded-object: what is a task of its own, or cut into some, is embedded in no other."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask._task_spec import DataNode, Task
from dask.highlevelgraph import MaterializedLayer
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crowded import Program, calls
from stageprof_collectors.comparison.measured import measure
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.embedded_object import RULE
from stageprof_runtime.holding import Walk

LAYER = f"scored-{'0' * 32}"
DATA = "data of the graph"


def wrapped(lead: float, graphs: int = 1, dump: float = 0.0, **fields: Any) -> Recording:
    """An array that is a task of its own, beside twenty that need it, in each of some graphs."""
    made = Program()
    for g in range(graphs):
        key = f"ndarray-{calls(1)[0][8:]}"
        known = {"how": DATA, "type": "numpy.ndarray", "tasks": 1, "dump": dump, "variable": ""}
        made.embedded(key, **(known | fields))
        made.client("serialization/graph.dump", max(dump, 1.0))
        made.tasks([key], work=1.0, lead=lead)
        made.tasks(calls(20, f"scored{g}"), work=50.0)
    return made.recording()


def test_what_is_wrapped_is_not_told_of() -> None:
    """What the rule's own fix leaves: one task, sent once."""
    assert not asked(RULE, wrapped(lead=100.0))


def test_what_is_wrapped_and_takes_long_is_sent_once() -> None:
    found = one(RULE, wrapped(lead=2_000.0))
    assert found.headline.startswith(
        "An unnamed ndarray of 32.0 MB made at etl.py:40 is sent once with the graph of etl.py:99: "
    )
    assert found.cost_s == pytest.approx(2.0, rel=0.01)
    assert "task of its own" in found.fix.text
    assert "wrap" not in found.fix.text
    assert "from outside" not in found.fix.text
    assert "traverse=False" not in found.fix.code


def test_what_is_wrapped_anew_for_each_graph_is_to_be_kept() -> None:
    found = one(RULE, wrapped(lead=100.0, graphs=3))
    assert "is sent with each of 3 graphs" in found.headline
    assert "`persist`" in found.fix.text
    with dask.config.set(scheduler="sync"):
        kept = run(found, thing=np.arange(10))["thing"]
        assert kept.sum().compute() == 45


def test_what_is_wrapped_anew_for_each_task_is_embedded_in_all() -> None:
    made = Program()
    keys = calls(20, "ndarray")
    for i, key in enumerate(keys):
        made.embedded(key, how=DATA, tasks=1, copies=int(not i))
        made.sent(key, 1, 32_000_200)
    made.tasks(keys, work=1.0, lead=50.0)
    found = one(RULE, made.recording())
    assert "is embedded in 20 tasks" in found.headline
    assert found.evidence["sent_bytes"] == 20 * 32_000_000
    assert "once, before the loop" in found.fix.text


@pytest.mark.parametrize(
    ("how", "pieces"), [(DATA, 10), ("frame of from_pandas", 1)], ids=["array", "frame"]
)
def test_what_is_cut_travels_in_pieces(how: str, pieces: int) -> None:
    """`from_array` and `from_pandas`: each task has a piece of it, all together it is sent once."""
    made = Program()
    tasks = 10 if how == DATA else 0
    made.embedded(LAYER, how=how, pieces=pieces, tasks=tasks)
    made.sent(LAYER, 10, 32_000_000)
    made.tasks([(LAYER, i) for i in range(10)], work=10.0, lead=100.0)
    found = one(RULE, made.recording())
    assert found.evidence["sent_bytes"] == 32_000_000
    assert "is sent once with the graph of etl.py:99 in 10 pieces: " in found.headline
    assert "each of its 10 pieces" in found.fix.text
    assert "from outside" not in found.fix.text
    compile(found.fix.code, "<fix>", "exec")


def test_recordings_that_tell_data_of_every_layer_are_read_by_their_messages() -> None:
    """Two objects, of which one was wrapped: in messages there is room for the other alone."""
    made = Program()
    keys = calls(24, "score")
    for i, key in enumerate(keys):
        made.embedded(key, tasks=1, copies=int(not i), nbytes=8_000_000)
        known = {"how": DATA, "tasks": 1, "copies": int(not i), "variable": "", "line": 43}
        made.embedded(key, number=2, type="numpy.ndarray", **known)
        made.sent(key, 1, 8_002_000)
    made.tasks(keys, work=10.0, lead=100.0)
    recording = made.recording()

    table = recording.objects().set_index("number")
    assert table["sent_bytes"].to_dict() == {1: 24 * 8_000_000, 2: 32_000_000}
    assert table["tasks"].to_dict() == {1: 24, 2: 1}
    assert one(RULE, recording).where.variable == "weights"
    assert measure(recording).counts["embedded_copies"] == 24 + 1


def test_messages_of_map_are_counted_whether_told_one_by_one_or_together() -> None:
    """Those that took long are told by their keys, the others by what these begin with."""
    made = Program()
    keys = [f"scored-{i:032x}" for i in range(20)]
    made.embedded("scored", how="argument 1 of client.map")
    made.sent("scored", 3, 3 * 32_000_200)
    for key in keys[3:]:
        made.sent(key, 1, 32_000_200)
    made.tasks(keys, work=10.0, lead=100.0)
    table = made.recording().objects()
    assert table["sent_bytes"].tolist() == [20 * 32_000_000]


def test_data_is_told_of_the_task_that_it_is() -> None:
    """However many layers have that task among theirs; what was fused is in the other's message."""
    table = np.ones(100_000)
    shared = dask.delayed(table, traverse=False)
    total = dask.delayed(sum)([dask.delayed(_given)(i, shared) for i in range(3)])
    found = Walk().graph(total.dask)
    assert {(held.layer, held.key) for held in found} == {(shared.key, shared.key)}

    inside: dict[Any, Any] = {"table": DataNode("table", table)}
    outer = Task("outer", _given, 1, inside)
    [all_tasks] = Walk().graph(outer, "layer")
    [one_task] = Walk().graph(MaterializedLayer({"outer": outer}), "layer")
    assert (all_tasks.layer, all_tasks.key) == ("layer", None)
    assert (one_task.layer, one_task.key) == ("layer", "outer")


def _given(i: int, table: Any) -> int:
    return i


@pytest.mark.cluster
def test_pieces_of_an_array_each_for_one_task_are_sent_once(client: Client) -> None:
    """Its whole was to be wrapped, "then it travels once and not with each of 8 tasks"."""
    table = np.arange(1_000_000.0)
    with stageprof.profile() as region:
        sums = client.gather(client.map(np.sum, np.array_split(table, 8)))
    assert sum(sums) == table.sum()
    assert not asked(RULE, region.recording)
    found = one(RULE, region.recording, nbytes=1e6, once=0, once_s=0)
    assert "is sent once with the graph" in found.headline
    assert "in 8 pieces" in found.headline
    assert "wrap" not in found.fix.text
    assert region.recording.objects()["pieces"].tolist() == [8]


@pytest.mark.cluster
def test_pieces_that_are_submitted_one_by_one_are_values_of_their_own(client: Client) -> None:
    table = np.arange(1_000_000.0)
    with stageprof.profile() as region:
        parts = [
            client.submit(np.sum, table[i : i + 250_000]) for i in range(0, 1_000_000, 250_000)
        ]
        assert sum(client.gather(parts)) == table.sum()
        again = [client.submit(np.sum, table[:500_000], pure=False) for _ in range(3)]
        assert len({*client.gather(again)}) == 1
    told = {f.evidence["tasks"]: f for f in asked(RULE, region.recording, nbytes=1e6)}
    assert told[4].headline.startswith("4 values of `table`, each an ndarray of 2.0 MB")
    assert "wrap" not in told[4].fix.text
    assert told[3].headline.startswith("`table`, an ndarray of 4.0 MB")
    assert "travels once and not with each of 3 tasks" in told[3].fix.text


@pytest.mark.cluster
def test_a_frame_that_is_merged_with_is_sent_once(client: Client) -> None:
    """`delayed` was printed for it, which has no `_meta`."""
    right = pd.DataFrame({"a": np.arange(200_000), "b": 1.0})
    left = dd.from_pandas(pd.DataFrame({"a": np.arange(1_000)}), npartitions=2)
    with stageprof.profile() as region:
        assert left.merge(right, on="a").b.sum().compute() == 1_000
    [found] = asked(RULE, region.recording, nbytes=1e6, once=0, once_s=0)
    assert "sent once" in found.headline
    assert "wrap" not in found.fix.text
    assert "from_map" in found.fix.code
