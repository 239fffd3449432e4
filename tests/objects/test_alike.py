"""A dump of very many small objects: the first are noted, and parts of the graph always."""

from __future__ import annotations

import io
import pickle

import numpy as np
from dask._task_spec import Task

from stageprof_runtime.pickling import ALIKE, Attempt, watched


class Small:
    def __init__(self, number: int) -> None:
        self.number = number


def noted(x: object) -> Attempt:
    attempt = Attempt()
    with io.BytesIO() as file:

        class Plain(pickle.Pickler):
            pass

        watched(Plain, file, attempt, {"protocol": 5}).dump(x)
    return attempt


def test_a_million_objects_of_a_class_are_not_noted_one_by_one() -> None:
    attempt = noted([Small(i) for i in range(20 * ALIKE)])
    assert ALIKE <= len(attempt.values) < 2 * ALIKE


def test_parts_of_a_graph_are_all_noted() -> None:
    tasks = [Task(f"a-{i}", abs, i) for i in range(2 * ALIKE)]
    found = set(map(id, noted(tasks).values))
    assert all(id(task) in found for task in tasks)


def test_objects_after_others_of_their_class_are_noted_again() -> None:
    late = Small(0), {1}.__class__, Task("late", abs, 1)
    found = set(map(id, noted([*(Small(i) for i in range(5000)), *late]).values))
    assert id(late[2]) in found


def test_chunks_of_a_layer_are_all_noted() -> None:
    chunks = [np.ones(3) for _ in range(2 * ALIKE)]
    found = set(map(id, noted(chunks).values))
    assert all(id(chunk) in found for chunk in chunks)
