"""Machines apart: processes in network namespaces, with loss and delay between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import dask.array as da
import numpy as np
import pytest
from distributed import Client

import clusters
import link
from link import HERE, THERE
from truth import record

#: Seconds each way, and the part of the packets that is lost.
DELAY_S, LOSS = 0.025, 0.02


@pytest.fixture(scope="module")
def far() -> Iterator[Client]:
    """A scheduler and a worker on this side of the link, and another worker on that one."""
    with link.slow(DELAY_S, LOSS) as inside, ExitStack() as stack:
        started = clusters.process("scheduler", "--host", HERE, "--port", "0", "--no-dashboard")
        address = clusters.address_of(stack.enter_context(started))
        basic = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        stack.enter_context(clusters.process(*basic, "--host", HERE))
        stack.enter_context(clusters.process(*basic, "--host", THERE, prefix=inside))
        client = stack.enter_context(Client(address, timeout=60))
        client.wait_for_workers(2, timeout=60)
        yield client


def total() -> float:
    """Each block of the result needs blocks of both workers."""
    x = da.ones((400, 400), chunks=(50, 400))
    return float((x.rechunk((400, 50)) + np.arange(400)).sum().compute())


@pytest.mark.netns
@pytest.mark.nightly
def test_over_a_link_with_loss_nothing_is_lost_and_the_account_adds_up(far: Client) -> None:
    bare = total()
    found: list[float] = []
    recording = record(lambda: found.append(total()))

    assert found == [bare]
    coverage = recording.coverage()
    assert (coverage["dropped"], coverage["batches_lost"], coverage["tails_lost"]) == ({}, 0, {})
    assert (coverage["workers"], coverage["instrumented"]) == (2, 2)
    assert set(recording.tasks()["worker"]) == {w["name"] for w in _workers(far)}
    assert recording.steps().set_index("step")["wall_s"]["data.transfer"] > DELAY_S


@pytest.mark.netns
@pytest.mark.nightly
def test_the_clock_of_a_worker_far_away_is_known_within_its_bound(far: Client) -> None:
    """Both are one machine's clock: whatever offset is found is the error."""
    workers = record(total).workers().set_index("worker")
    [name] = [worker["name"] for worker in _workers(far) if THERE in worker["id"]]

    offset, error = (float(workers[column][name]) for column in ("offset_s", "offset_error_s"))
    assert abs(offset) <= error
    assert error < 2 * DELAY_S


def _workers(client: Client) -> list[dict[str, str]]:
    known = client.scheduler_info(n_workers=-1)["workers"]
    return [info | {"id": address} for address, info in known.items()]
