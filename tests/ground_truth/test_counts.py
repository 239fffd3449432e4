"""What is counted is the program's, whatever recording it takes."""

from __future__ import annotations

from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from stageprof_collectors.comparison.counts import counted
from truth import record


def text(i: int, size: int) -> bytes:
    return bytes(size)


def pickled(size: int) -> float:
    """Bytes pickled for ten tasks whose results go to the client."""
    tasks: list[Any] = [dask.delayed(text)(i, size) for i in range(10)]
    return counted(record(lambda: dask.compute(*tasks)))["pickled_bytes"]


def test_more_workers_are_no_more_pickled_bytes() -> None:
    """Plugins of stageprof's own go to each of them."""
    found = []
    for workers in (1, 3):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster),
        ):
            found.append(pickled(1_000))
    assert found[1] == pytest.approx(found[0], rel=0.3)


def test_larger_results_are_more_pickled_bytes(cluster: Client) -> None:
    assert pickled(2_500) > 1.2 * pickled(1_000)
