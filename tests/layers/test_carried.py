"""Noting whose the bytes of a message are changes none of them, and names every kind of key."""

from __future__ import annotations

import operator
import pickle
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from dask._task_spec import Task
from distributed import protocol
from distributed.protocol.serialize import Serialize, ToPickle

from stageprof_runtime import process
from stageprof_runtime.carried import long_name, short_name
from stageprof_runtime.event import SHARE
from stageprof_runtime.made import Lines, prefix_of
from stageprof_runtime.probes import serialization, shares
from stageprof_runtime.probes.layers import _rewritten
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import step_name

HASH, UUID = "0123456789abcdef" * 2, "d2f0c7a1-5b1c-4c39-9a50-0d6d0a1f6f10"


def message() -> list[dict[str, Any]]:
    """What a scheduler sends to a worker: tasks of two layers, one with an array out of band."""
    array = np.arange(10_000.0)
    keys = [("x-1", 0), ("x-1", 1), ("y-2", 0), f"inc-{HASH}"]
    tasks = [Task(key, operator.add, array if key[0] == "y-2" else 1, 1) for key in keys]
    return [{"op": "compute-task", "key": t.key, "run_spec": ToPickle(t)} for t in tasks]


def exchanged(msg: Any) -> tuple[list[Any], Any, list[Any]]:
    """Frames and what is loaded of them, with the probes installed, and the shares."""
    ring = Ring()
    leave = process.join("scheduler", ring, [serialization.install, shares.install])
    try:
        frames = protocol.dumps(msg)
        loaded = protocol.loads(frames)
    finally:
        leave()
    rows = [row for row in ring.take() if row[0] == SHARE]
    return frames, loaded, rows


def test_the_bytes_sent_are_the_same_as_unwatched() -> None:
    plain = [bytes(frame) for frame in protocol.dumps(message())]
    frames, loaded, _ = exchanged(message())
    assert [bytes(frame) for frame in frames] == plain
    assert [m["key"] for m in loaded] == [m["key"] for m in message()]


def test_tasks_of_a_message_are_shares_of_their_layers() -> None:
    _, _, rows = exchanged(message())
    for step in ("task.dump", "task.load"):
        found = {row[3]: row[4:] for row in rows if step_name(row[2]) == step}
        assert {name: row[0] for name, row in found.items()} == {"x-1": 2, "y-2": 1, "inc": 1}
        assert found["y-2"][2] > 80_000 > found["x-1"][2]


def test_values_of_a_message_are_shares_of_the_keys_that_they_are_of() -> None:
    data = {("a-1", 0): Serialize(b"0" * 10_000), ("b-2", 0): Serialize([1, 2])}
    _, _, rows = exchanged({"status": "OK", "data": data})
    for step in ("result.dump", "result.load"):
        found = {row[3]: row[6] for row in rows if step_name(row[2]) == step}
        assert set(found) == {"a-1", "b-2"}
        assert found["a-1"] >= 10_000 > found["b-2"]


def test_what_cannot_be_pickled_fails_as_it_would_unwatched() -> None:
    task = Task("x", operator.add, (i for i in range(3)), 1)
    with pytest.raises((TypeError, pickle.PicklingError)):
        exchanged([{"op": "compute-task", "run_spec": ToPickle(task)}])


@pytest.mark.parametrize(
    ("key", "short"),
    [
        (("x-1a2b", 0, 1), "x-1a2b"),
        (f"inc-{HASH}", "inc"),
        (f"a-b-{UUID}", "a-b"),
        ("plain", "plain"),
        ((1, 2), ""),
        ((), ""),
        (7, ""),
        (b"bytes", ""),
        ("\ud800-x", "\ud800-x"),
    ],
)
def test_every_kind_of_key_has_a_short_name(key: Any, short: str) -> None:
    assert short_name(key) == short
    assert type(long_name(key)) is str


def test_names_of_one_function_have_one_prefix() -> None:
    assert prefix_of(f"inc-{HASH}") == prefix_of(f"inc-{UUID}") == "inc"
    assert prefix_of("sum-aggregate-1") == "sum-aggregate"


class _Rows:
    """Keeps the rows that it is given."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def row(self, _role: str, row: Any) -> None:
        self.rows.append(row)


def test_a_name_made_again_stays_with_the_line_that_made_it_first() -> None:
    rows: Any = _Rows()
    lines = Lines(rows)
    for name, line in (("x-1", 10), ("x-2", 20), ("x-1", 30), ("x-2", 30)):
        lines.made(name, ("f.py", line))
    assert (lines.of("x-1"), lines.of("x-2")) == (("f.py", 10), ("f.py", 20))
    assert len(rows.rows) == 2


class _Named:
    """Stands for an expression."""

    def __init__(self) -> None:
        self._name = "expr-1"

    def _lower(self) -> tuple[str, bool]:
        big = _Named()
        freed = weakref.ref(big)
        name = _rewritten(sys._getframe(), own=True)
        del big
        return name, freed() is None


def test_looking_for_an_expression_in_a_frame_keeps_nothing_alive() -> None:
    assert _Named()._lower() == ("expr-1", True)
