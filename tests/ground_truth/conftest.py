"""Clusters shared by all ground-truth cases, and the local schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import psutil
import pytest
from distributed import Client

import clusters
import planted


@pytest.fixture(scope="session", params=["separate", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Two workers with a thread each: in processes of their own, and as LocalCluster."""
    with getattr(clusters, request.param)() as client:
        yield client


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes that are there already.

    Starting them takes from one run to the next by more than the bar allows.
    """
    before = {process.pid for process in psutil.Process().children()}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(planted.identity, range(8)))
        mine = {process.pid for process in psutil.Process().children()} - before
        clusters.shared.update(mine)
        yield pool
    clusters.shared.difference_update(mine)


@pytest.fixture(params=["threads", "processes", "sync"])
def local_scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the local schedulers, made the default."""
    with dask.config.set(scheduler=request.param, num_workers=2):
        if request.param == "processes":
            with dask.config.set(pool=request.getfixturevalue("pool")):
                yield request.param
        else:
            yield request.param
