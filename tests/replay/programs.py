"""Programs of sleeps in pairs: slow, and the same with one cause taken away."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
from distributed import Client, get_worker, worker_client

import planted
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change, Factor
from stageprof_runtime.stage import Stage, stage_of


def sleep(seconds: float, *needs: Any) -> float:
    """A task that takes this long."""
    time.sleep(seconds)
    return seconds


def nap(seconds: float, *needs: Any) -> float:
    """The same under another name, so that a test can tell it apart."""
    time.sleep(seconds)
    return seconds


def heavy(seconds: float) -> planted.Slow:
    """A result that takes this long to be moved: half to dump, half to load."""
    return planted.Slow("/dev/null", seconds / 2, seconds / 2)


def where(x: Any) -> str:
    """The worker that was given x."""
    return str(get_worker().address)


def on_the_path(seconds: float) -> None:
    """A chain of three, the second of which takes `seconds`, beside one of 0.35 s."""
    task, odd = dask.delayed(sleep), dask.delayed(nap)
    dask.compute(task(0.1, odd(seconds, task(0.1))), task(0.35))


def off_the_path(seconds: float) -> None:
    """A chain of 0.6 s beside one task of `seconds`."""
    task, odd = dask.delayed(sleep), dask.delayed(nap)
    dask.compute(task(0.2, task(0.2, task(0.2))), odd(seconds))


def every(seconds: float) -> None:
    """Nine tasks of `seconds`."""
    dask.compute([dask.delayed(nap)(seconds) for _ in range(9)])


def constructed(seconds: float) -> None:
    """A graph that takes `seconds` to build, before a task of 0.2 s; twice."""
    for _ in range(2):
        token = planted.SlowToken("/dev/null", seconds)
        dask.delayed(planted.ignore, pure=True)(token, dask.delayed(sleep)(0.2)).compute()


def moved(client: Client, seconds: float) -> None:
    """A result that takes `seconds` to be moved to the worker that needs it."""
    one, two = sorted(client.scheduler_info()["workers"])
    made = client.submit(heavy, seconds, workers=[one], pure=False)
    task = client.submit(where, made, workers=[two], pure=False)
    assert task.result() == two


def asks(seconds: float, other: str) -> float:
    """A task that hands over another and waits for its result, which takes `seconds` to come."""
    with worker_client() as client:
        client.submit(heavy, seconds, workers=[other], pure=False).result()
    return seconds


def asked(client: Client, seconds: float) -> None:
    """The same from outside: nothing but a number comes here."""
    one, two = sorted(client.scheduler_info()["workers"])
    client.submit(asks, seconds, two, workers=[one], pure=False).result()


def rows(recording: Recording, prefix: str) -> list[int]:
    """Rows of the runs of a function."""
    tasks = recording.tasks()
    return [int(i) for i in tasks.index[tasks["prefix"] == prefix]]


def only(recording: Recording, prefix: str, left: float) -> Factor:
    """A factor for the runs of a function."""
    import numpy as np

    factor = np.ones(len(recording.timeline.runs["run"]))
    factor[rows(recording, prefix)] = left
    return factor


def without(stage: Stage) -> Change:
    """No serial piece of a stage."""
    return Change(serial=lambda step: float(stage_of(step.what.step) != stage))


@dataclass(frozen=True)
class Pair:
    """A program with a slow and a fast argument, and the change between the two."""

    program: Callable[[float], None]
    slow: float
    fast: float
    change: Callable[[Recording], Change]


PAIRS = {
    "a slow task on the path": Pair(
        on_the_path, 0.6, 0.15, lambda r: Change(compute=only(r, "nap", 0.25))
    ),
    "a slow task off the path": Pair(
        off_the_path, 0.4, 0.1, lambda r: Change(compute=only(r, "nap", 0.25))
    ),
    "every task slow": Pair(every, 0.2, 0.1, lambda _: Change(compute=0.5)),
    "slow construction": Pair(constructed, 0.4, 0.0, lambda _: without(Stage.CONSTRUCTION)),
}
