"""What recording leaves behind: nothing, however often it begins and ends."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from types import ModuleType
from typing import Any

import dask
import psutil
import pytest
from dask import delayed
from dask.callbacks import Callback

import clusters
import remains
import stageprof
from stageprof_runtime.compat import _PLACES

#: Packages whose attributes, and those of whose classes, shall be the very same objects.
PACKAGES = (
    "dask.", "distributed.", "cloudpickle.", "importlib.", "concurrent.", "pickle.", "gc.", "sys.",
)  # fmt: skip
#: What Dask itself sets anew as it runs.
OWN = {"dask.config.config", "distributed.client._global_client_index"}


def attributes() -> dict[str, object]:
    """Everything that somebody could have replaced: its name -> the object itself."""
    modules = [(n, m) for n, m in sys.modules.items() if f"{n}.".startswith(PACKAGES)]
    assert {module for module, _, _ in _PLACES.values()} - {n for n, _ in modules} == set()
    found: dict[str, object] = dict(_of_modules(modules))
    found |= {f"{name}.{key}": one for name, kept in _shared() for key, one in kept.items()}
    return found


def _of_modules(modules: list[tuple[str, ModuleType]]) -> Iterator[tuple[str, object]]:
    for name, module in modules:
        for attribute, value in list(vars(module).items()):
            yield f"{name}.{attribute}", value
            if isinstance(value, type) and value.__module__ == name:
                inside = list(vars(value).items())
                yield from ((f"{name}.{attribute}.{inner}", raw) for inner, raw in inside)


def _shared() -> Iterator[tuple[str, dict[Any, object]]]:
    """What all of a process share and callbacks can be put into."""
    yield "dask callbacks", {str(callback): callback for callback in Callback.active}
    yield "gc callbacks", {id(callback): callback for callback in gc.callbacks}
    yield "meta path", {id(finder): finder for finder in sys.meta_path}
    yield "path hooks", {id(hook): hook for hook in sys.path_hooks}
    yield "signals", {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield "loggers", {id(handler): handler for handler in logging.getLogger().handlers}
    hooks = (sys.getprofile(), sys.gettrace(), threading.getprofile(), threading.gettrace())
    yield "hooks", dict(enumerate((*hooks, sys.excepthook, threading.excepthook, os.fork)))


def counts() -> dict[str, int]:
    """Threads, open files, children and the sizes of what is shared.

    Children of children come and go in a browser that other tests have begun.
    """
    process = psutil.Process()
    return {
        "threads": threading.active_count(),
        "fds": process.num_fds(),
        "children": len(process.children()),
        **{name: len(content) for name, content in _shared()},
    }


def changed(before: dict[str, object]) -> list[str]:
    """What is another object now, is gone, or has come and is ours."""
    now = attributes()
    other = [name for name, value in before.items() if now.get(name) is not value]
    come = [n for n, v in now.items() if n not in before and "stageprof" in _file(v)]
    return [name for name in [*other, *come] if name not in OWN and not _counts(before.get(name))]


def _counts(value: object) -> bool:
    """Whether it is a number or text, which Dask may change as it counts."""
    return isinstance(value, int | float | str | None)


def _file(value: object) -> str:
    return str(getattr(getattr(value, "__code__", None), "co_filename", ""))


def inc(x: int) -> int:
    return x + 1


@pytest.mark.smoke
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_a_hundred_starts_and_stops_leave_the_process_as_it_was(scheduler: str) -> None:
    """N3: the same plugins, callbacks, patched functions, threads and open files, 100 times."""

    def cycle(*, gil: bool = False) -> None:
        with dask.config.set(scheduler=scheduler, num_workers=2), stageprof.profile(gil=gil):
            assert dask.compute(*[delayed(inc)(i) for i in range(3)]) == (1, 2, 3)

    import_all()
    for _ in range(3):  # what is imported, cached and begun once
        cycle(gil=True)
    before, numbers = attributes(), counts()
    for i in range(100):
        cycle(gil=i % 25 == 0)
        assert remains.of_process() == []
    assert changed(before) == []
    assert counts() == numbers


def import_all() -> None:
    """Modules in which something is replaced, which may not be imported yet."""
    for module, _, _ in _PLACES.values():
        importlib.import_module(module)


def test_something_left_behind_would_be_found() -> None:
    """N3: the comparison itself sees a replaced function, method and callback."""
    import_all()
    before, numbers = attributes(), counts()
    with pytest.MonkeyPatch.context() as patch, Callback():
        patch.setattr("dask.local.get_async", lambda: None)
        patch.setattr("distributed.Client._gather", lambda: None)
        patch.setattr("gc.callbacks", [*gc.callbacks, print])
        found = changed(before)
        assert {"dask.local.get_async", "distributed.client.Client._gather"} < set(found)
        assert counts() != numbers
    assert changed(before) == []
    assert counts() == numbers


@pytest.mark.cluster
def test_no_setting_of_dasks_is_changed() -> None:
    """N3: of client, scheduler and worker, while they are recorded and afterwards."""
    with clusters.inside(1) as client:
        before = deepcopy(dask.config.config)
        with stageprof.profile():
            assert client.gather(client.map(inc, range(5), pure=False)) == [1, 2, 3, 4, 5]
            assert dask.config.config == before
        assert dask.config.config == before


_before: dict[str, object] = {}


def remember() -> None:
    """In another process: what is there now."""
    import_all()
    _before.update(attributes())


def compared() -> tuple[list[str], dict[str, int]]:
    """In another process: what has changed since, and the counts."""
    gc.collect()
    return changed(_before), counts()


@pytest.mark.cluster
@pytest.mark.nightly
def test_nor_do_scheduler_and_workers_keep_anything(
    record_property: Callable[[str, object], None],
) -> None:
    """N3: the same on a cluster, in the client, in the scheduler and in the workers."""

    def cycle() -> None:
        with stageprof.profile():
            assert client.gather(client.map(inc, range(5), pure=False)) == [1, 2, 3, 4, 5]

    def gone() -> bool:
        return remains.everywhere(client) + remains.of_client(client) == []

    def everywhere(function: Callable[[], Any]) -> list[Any]:
        there = client.run(function)
        return [function(), client.run_on_scheduler(function), *(there[w] for w in sorted(there))]

    with clusters.separate(2) as client:
        for _ in range(5):  # Dask's own pools of connections and threads fill first
            cycle()
        clusters.soon(gone, 10)
        everywhere(remember)
        before = [numbers for _, numbers in everywhere(compared)]
        for _ in range(100):
            cycle()
        clusters.soon(gone, 10)
        clusters.soon(lambda: no_more(everywhere(compared), before), 10)
        found = everywhere(compared)
    record_property("N3", [before, [numbers for _, numbers in found]])
    assert [names for names, _ in found] == [[]] * 4


def no_more(now: list[tuple[list[str], dict[str, int]]], before: list[dict[str, int]]) -> bool:
    """No more of anything, but for connections that Dask pools: the same few for any cycles."""
    spare = {"fds": 3}
    pairs = zip([numbers for _, numbers in now], before, strict=True)
    return all(n[k] <= b[k] + spare.get(k, 0) for n, b in pairs for k in b)
