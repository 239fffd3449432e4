"""Clusters shared by the ground-truth cases of one module, and the local schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import pytest
from distributed import Client

import clusters
import planted


@pytest.fixture(scope="module", params=["separate", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Two workers with a thread each: in processes of their own, and as LocalCluster."""
    with getattr(clusters, request.param)() as client:
        yield client


@pytest.fixture(params=["threads", "processes", "sync"])
def local_scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the local schedulers, made the default.

    The process scheduler gets a pool that is there already: starting processes takes from one run
    to the next by more than the bar allows.
    """
    with dask.config.set(scheduler=request.param, num_workers=2):
        if request.param != "processes":
            yield request.param
            return
        with ProcessPoolExecutor(2, get_context("spawn")) as pool, dask.config.set(pool=pool):
            list(pool.map(planted.identity, range(8)))
            yield request.param
