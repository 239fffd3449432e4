"""One cluster for all cases: its scheduler and worker in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

import clusters


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client with one worker."""
    with clusters.separate(workers=1) as client:
        yield client
