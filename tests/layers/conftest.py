"""A cluster of two workers with a thread each, for the cases of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

import clusters


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Scheduler and workers in processes of their own."""
    with clusters.separate() as client:
        yield client
