"""Looking changes nothing: not what is sent, not what lives on, not what the user's code does."""

from __future__ import annotations

import functools
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import distributed.protocol.pickle as dumping
import numpy as np
import pandas as pd
import pytest
from dask._task_spec import Task, TaskRef
from dask.highlevelgraph import HighLevelGraph
from distributed import Client

import planted
import stageprof
from objects import programs
from stageprof_runtime import budget, naming, operations, parts, pickling, weight
from stageprof_runtime.compat import cloudpickle
from stageprof_runtime.examination import Examination
from stageprof_runtime.holding import LEAST, Walk
from stageprof_runtime.kinds import kind_of
from stageprof_runtime.names import Names
from stageprof_runtime.pickling import Dump
from stageprof_runtime.probes import objects
from stageprof_runtime.weight import weigh

# -- the bytes ------------------------------------------------------------------------------------


class OfThisModule:
    """Neither plain pickle nor the worker can import it: cloudpickle sends it whole."""

    def __init__(self) -> None:
        self.data = np.arange(10_000)


cloudpickle.register_pickle_by_value(sys.modules[__name__])

VALUES: dict[str, Any] = {
    "number": 1,
    "array": np.arange(100_000.0),
    "frame": pd.DataFrame({"s": ["a", "b"] * 1000, "x": np.arange(2000)}),
    "function": programs.first,
    "lambda": lambda x: x + programs.RATES[0],
    "closure": programs.make_scale(),
    "main": {"name": "__main__", "x": np.ones(10)},
    "texts": ["text"] * 50_000 + [bytes(200_000)],
    "tasks": {f"k{i}": Task(f"k{i}", programs.first, i, [i]) for i in range(3000)},
    "instance": OfThisModule(),
    "partial": functools.partial(programs.first, np.ones(3), y=np.ones(4)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_the_bytes_are_the_same(value: object) -> None:
    """In band and out of band."""
    plain: list[Any] = []
    seen: list[Any] = []
    expected = dumping.dumps(value, buffer_callback=plain.append)
    got = Dump().watching(dumping.dumps)(value, buffer_callback=seen.append)
    assert got == expected
    assert [bytes(memoryview(b)) for b in seen] == [bytes(memoryview(b)) for b in plain]


def test_what_cannot_be_pickled_fails_as_before(client: Client) -> None:
    """With the same exception, and no failure of ours."""
    import threading

    def outcome() -> str:
        with pytest.raises(TypeError) as error:
            client.submit(planted.ignore, threading.Lock(), pure=False)
        return str(error.value)

    expected = outcome()
    with stageprof.profile() as prof:
        got = outcome()
    assert _without_addresses(got) == _without_addresses(expected)
    assert prof.recording.coverage()["dropped"] == {}


def _without_addresses(text: str) -> str:
    return " ".join(word for word in text.split() if "0x" not in word and "-" not in word)


def test_a_failure_of_ours_changes_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is there, and the failure is counted."""

    def broken(*args: Any) -> Any:
        raise SystemExit("ours")

    monkeypatch.setattr(objects, "Examination", broken)
    monkeypatch.setattr(Names, "see", broken)
    with stageprof.profile() as prof:
        assert dask.delayed(sum)([1, 2, 3]).compute() == 6
    assert any("hook failed" in reason for reason in prof.recording.coverage()["dropped"])


# -- what lives on ---------------------------------------------------------------------------------


def test_what_the_user_deletes_is_freed(client: Client) -> None:
    """Neither names nor notes nor frames keep an object that was looked at."""
    with stageprof.profile():
        model = programs.Model(1)
        call = dask.delayed(programs.first)(1, model)
        assert call.compute() == 1
        gone = weakref.ref(model)
        del model, call
        gc.collect()
        assert gone() is None


def test_locals_that_the_user_has_in_hand_stay_as_they_are(client: Client) -> None:
    """A function that called `locals()` finds in it what was there."""
    with stageprof.profile():
        table = np.ones(50_000)
        mine = locals()
        before = dict(mine)
        later = dask.delayed(planted.ignore)(table)
        later.compute()
        assert mine == before
        assert later is not None


# -- what the user's code does ---------------------------------------------------------------------

CALLED: list[str] = []


def _hostile(name: str) -> Any:
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        CALLED.append(name)
        raise RuntimeError(name)

    return called


_NAMES = (
    "__getattr__", "__getattribute__", "__repr__", "__str__", "__eq__", "__hash__", "__len__",
    "__bool__", "__iter__", "__getitem__", "__sizeof__", "__reduce__", "__reduce_ex__",
    "__getstate__", "__call__", "__contains__", "__dask_tokenize__", "__array__", "__format__",
    "__dir__",
)  # fmt: skip
Hostile = type("Hostile", (), {name: _hostile(name) for name in _NAMES})
HostileList = type("HostileList", (list,), {n: _hostile(n) for n in _NAMES if n != "__hash__"})
HostileDict = type("HostileDict", (dict,), {n: _hostile(n) for n in _NAMES if n != "__hash__"})


@pytest.mark.parametrize("kind", [Hostile, HostileList, HostileDict])
def test_no_method_of_an_object_is_called(kind: Any) -> None:
    """Weighing, walking and naming ask an object nothing."""
    hostile = kind()
    task = Task("key", programs.first)  # which asks its arguments, so they are put in later
    task.args, task.kwargs = (hostile, [hostile]), {"x": {"y": hostile}}
    CALLED.clear()
    weigh(hostile)
    Walk().graph(task)
    names = Names()
    names.see(task, "layer", sys._getframe(), 2**63)
    names.get(hostile)
    assert CALLED == []


def _no_class(self: object) -> Any:
    raise RuntimeError("no class")


Lying = type("Lying", (), {"__class__": property(_no_class)})


@pytest.mark.parametrize("odd", [Lying, programs.Config])
def test_the_result_is_unchanged_by_odd_objects(client: Client, odd: Any) -> None:
    """The same result or exception with and without us."""

    def outcome() -> str:
        try:
            return repr(client.submit(planted.ignore, odd(), pure=False).result())
        except Exception as error:
            return type(error).__name__

    expected = outcome()
    with stageprof.profile() as prof:
        assert outcome() == expected
    assert prof.recording.coverage()["dropped"] == {}


@pytest.mark.parametrize("held", [{"a": 1, "b": 2}, {1, 2}], ids=["dict", "set"])
def test_what_another_thread_changes_meanwhile_is_looked_at_all_the_same(held: Any) -> None:
    """A log line told of a hook that failed, for the size had changed; ten, and none was named."""
    looking = naming._parts(held)
    next(looking)
    held.update({"c": 3})
    assert len(list(looking)) == 1


def test_containers_that_hold_themselves_end() -> None:
    """Weighing and walking stop at what they have seen."""
    ring: list[Any] = [np.ones(20_000)]
    ring.append(ring)
    table: dict[str, Any] = {"ring": ring}
    table["self"] = table
    model = programs.Config()
    model.me = model  # type: ignore[attr-defined]
    assert weigh(table) >= LEAST
    assert weigh(model) < LEAST
    found = Walk().graph(Task("key", programs.first, table, ring, model))
    assert any(held.value is model for held in found)


def test_many_small_objects_are_weighed_by_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work does not grow with the size of a container."""
    looked: list[object] = []

    def counted(value: object) -> int:
        looked.append(value)
        return kind_of(value)

    many = {i: programs.Config() for i in range(100_000)}
    monkeypatch.setattr(weight, "kind_of", counted)
    assert weigh([many, many]) > LEAST
    assert len(looked) < weight.MOST


def test_what_there_was_no_time_for_is_said(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `coverage()`, with the reason."""
    monkeypatch.setattr(budget, "FLOOR_NS", 0)
    monkeypatch.setattr(budget, "SHARE", 0.0)
    table = np.ones(100_000)
    with stageprof.profile() as prof:
        dask.delayed(planted.ignore)(table).compute()
    coverage = prof.recording.coverage()
    assert prof.recording.objects().empty
    assert any("no time" in why for why in coverage["objects_not_examined"])


def test_the_cost_of_looking_is_told(client: Client, tmp_path: Path) -> None:
    """As overhead of its own."""
    with stageprof.profile() as prof:
        programs.from_array(client, str(tmp_path / "log"))
    told = prof.recording.coverage()["overhead"]["objects"]
    assert told["calls"] > 0
    assert told["seconds"] > 0


def test_small_dumps_are_not_suspicious() -> None:
    """A graph without anything large is not walked."""
    dump = Dump()
    dump.watching(dumping.dumps)(VALUES["number"], buffer_callback=[].append)
    assert not Examination(dump).suspicious
    assert not Examination(dump, until=0).suspicious


def test_without_time_for_all_notes_what_is_large_by_itself_has_its_share() -> None:
    """The large one comes last; the many small ones before it are left out."""
    config, large = [OfThisModule() for _ in range(1000)], np.ones(100_000)
    tasks = {str(i): Task(str(i), programs.first, one) for i, one in enumerate([*config, large])}
    dump = Dump()
    dump.watching(dumping.dumps)(tasks, buffer_callback=[].append)
    examination = Examination(dump)
    found = Walk().graph(tasks)
    assert set(examination.shares(found)) > {id(large)}
    took = examination.shares(found, until=0)
    assert {i for i, part in took.items() if part.nbytes} == {id(large)}
    assert took[id(large)].nbytes == large.nbytes


def test_without_time_for_a_whole_graph_its_largest_parts_are_seen() -> None:
    """A walk is told of them by the dump, and goes there first."""
    large = np.ones(100_000)
    layers = {str(i): {str(i): Task(str(i), programs.first, i)} for i in range(5_000)}
    layers["large"] = {"large": Task("large", programs.first, large)}
    graph = HighLevelGraph(layers, {name: set() for name in layers})  # type: ignore[arg-type]
    dump = Dump()
    dump.watching(dumping.dumps)(graph, buffer_callback=[].append)
    examination = Examination(dump)
    assert examination.suspicious
    walk = Walk(until=0, first=examination.parts())
    assert [held.layer for held in walk.graph(graph)] == ["large"]
    assert walk.stopped


def test_without_time_to_read_a_large_dump_it_is_suspicious() -> None:
    """It is said that it was not looked at."""
    tasks = {str(i): Task(str(i), programs.first, i) for i in range(10_000)}
    dump = Dump()
    dump.watching(dumping.dumps)(tasks, buffer_callback=[].append)
    assert not Examination(dump).suspicious
    assert Examination(dump, until=0).suspicious


def test_bytes_behind_a_part_of_dasks_in_the_users_class_are_the_objects() -> None:
    """They were taken for the delayed method's, which nobody is told of."""

    class Model(OfThisModule):  # which no pickler finds by its name: it travels whole
        score = dask.delayed(planted.ignore)

    model = Model()
    task = Task("key", programs.first, model, TaskRef("other"))
    dump = Dump()
    dump.watching(dumping.dumps)(task, buffer_callback=[].append)
    took = Examination(dump).shares(Walk().graph(task))
    assert took[id(model)].nbytes >= model.data.nbytes


def collections(dumps: Callable[..., Any], value: object) -> int:
    before = gc.get_stats()[0]["collections"]
    dumps(value, buffer_callback=[].append)
    return int(gc.get_stats()[0]["collections"] - before)


def test_what_is_noted_is_no_garbage_to_look_for() -> None:
    """A tuple for each task had Python look twice as often: a graph took half as long again."""
    tasks = {str(i): Task(str(i), programs.first, i) for i in range(20_000)}
    dump = Dump()
    plain = collections(dumping.dumps, tasks)
    assert collections(dump.watching(dumping.dumps), tasks) <= plain + 2
    assert len(dump.attempts[-1].values) > 20_000


def test_of_a_graph_of_too_many_parts_the_first_are_noted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take memory until it is on its way; that there are more is said."""
    monkeypatch.setattr(pickling, "MOST", 50)
    with stageprof.profile() as prof:
        dask.compute(*[dask.delayed(planted.ignore)(i) for i in range(100)])
    said = prof.recording.coverage()["objects_not_examined"]
    assert any("too many parts" in why for why in said)


class Failing(pickle.Pickler):
    """Fails after some buffers were handed on, as where the stack or memory is about to end."""

    def dump(self, obj: object) -> None:
        super().dump(obj)
        raise RecursionError


def test_buffers_are_handed_on_once_where_our_pickler_fails_and_dasks_does_not() -> None:
    arrays = [np.arange(10_000) + i for i in range(3)]
    buffers: list[pickle.PickleBuffer] = []
    data = Dump().dumps(Failing, pickle.dumps, arrays, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 3
    loaded = pickle.loads(data, buffers=buffers)
    assert all((a == b).all() for a, b in zip(arrays, loaded, strict=True))


def test_what_no_pickler_can_do_is_tried_by_ours_alone() -> None:
    tried: list[object] = []

    def plain(x: object, **_: object) -> bytes:
        tried.append(x)
        return b""

    with pytest.raises((pickle.PicklingError, AttributeError)):
        Dump().dumps(pickle.Pickler, plain, [lambda: None], protocol=5)
    assert tried == []


def test_classes_that_tasks_make_are_not_kept() -> None:
    """What their methods close over may be all of a task's data."""

    def lazy() -> tuple[object, weakref.ref[type]]:
        class Lazy:
            pass

        return Lazy(), weakref.ref(Lazy)

    value, gone = lazy()
    for ask in (kind_of, parts.part_of, operations.operations):
        assert [ask(value) for _ in range(2)] == [ask(value)] * 2
    del value
    gc.collect()
    assert gone() is None


def test_weighing_leaves_nothing_in_an_index_of_several_levels() -> None:
    """Pandas 2 looked for the place of each row, and kept that: eight bytes a row."""
    index = pd.MultiIndex.from_product([range(1000), range(100)])
    frame = pd.DataFrame({"x": np.ones(len(index))}, index=index)
    for value in (frame, frame["x"], index):
        assert weigh(value) >= 300_000
        assert "_engine" not in vars(index)["_cache"]
