"""A cluster for tests that leave it as it was: one for each file of them.

One for all files would take a tenth of a processor, for each process that runs tests, to the end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from distributed import Client

import clusters
import remains


@pytest.fixture(scope="module")
def standing() -> Iterator[str]:
    """The address of a scheduler with two workers of a thread each, started once."""
    with clusters.served(2) as address:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            # Nobody reads what they log, and a pipe that is full stops who writes.
            client.run_on_scheduler(logging.disable)
            client.run(logging.disable)
        yield address


@pytest.fixture(scope="module")
def client(standing: str) -> Iterator[Client]:
    """A client of that cluster; nothing of ours may be there after a module."""
    with Client(standing) as client:
        yield client
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
