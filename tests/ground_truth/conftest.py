"""Clusters shared by the ground-truth cases of one module, and the local schedulers."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest
from distributed import Client

import clusters


@pytest.fixture(scope="module", params=["separate", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Two workers with a thread each: in processes of their own, and as LocalCluster."""
    with getattr(clusters, request.param)() as client:
        yield client


@pytest.fixture(params=["threads", "processes", "sync"])
def local_scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the local schedulers, made the default."""
    with dask.config.set(scheduler=request.param, num_workers=2):
        yield request.param
