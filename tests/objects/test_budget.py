"""Looking for embedded objects takes 1 % of the run or 50 ms, whichever is more."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import dask
import numpy as np
import pytest
from dask import delayed
from distributed import Client

import planted
import stageprof
from stageprof_runtime.probes import objects

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.alone,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]

N = 5_000


class Small:
    """Something of the user's, which each task has its own of."""

    def __init__(self) -> None:
        self.x = list(range(20))


class Slow(Small):
    """Takes long to pickle: so does anything while something else has the processor."""

    def __getstate__(self) -> dict[str, Any]:
        time.sleep(0.02)
        return self.__dict__


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def computed(*calls: Any) -> None:
    dask.compute(*calls)


def handed_over(*calls: Any) -> None:
    """Without waiting for what runs."""
    for half in (calls[: N // 2], calls[N // 2 :]):
        dask.persist(*half)


@pytest.mark.parametrize("first", [Small, Slow])
@pytest.mark.parametrize("use", [computed, handed_over])
@pytest.mark.parametrize("make", [lambda: np.ones(1000), Small])
def test_looking_keeps_to_its_budget(
    client: Client, make: Callable[[], Any], use: Callable[..., None], first: Callable[[], Any]
) -> None:
    """One object in each of thousands of tasks; it is the thread's own time that counts.

    A collection of Python's is not looking, in whose time ever it begins.
    """
    with stageprof.profile(gil=False) as prof:
        began = time.perf_counter()
        made = [first() if i == 0 else make() for i in range(N)]
        use(*[delayed(planted.ignore)(one, i) for i, one in enumerate(made)])
        wall = time.perf_counter() - began
        spent = objects.cost[1] / 1e9
    assert 0 < spent <= max(0.05, 0.01 * wall)
    assert not [why for why in prof.recording.coverage()["dropped"] if "hook" in why]
