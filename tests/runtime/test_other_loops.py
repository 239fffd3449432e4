"""A coroutine is recorded though the client that is active there has a loop of its own."""

from __future__ import annotations

import asyncio

import pytest
from distributed import Client

import remains
import stageprof
from clusters import local, soon

pytestmark = pytest.mark.cluster


def inc(x: int) -> int:
    return x + 1


def test_a_coroutine_joins_through_the_clients_own_loop_and_waits_on_its_own() -> None:
    async def main() -> stageprof.profile:
        async with stageprof.profile() as prof:
            await asyncio.to_thread(lambda: client.submit(inc, 1).result())
            await asyncio.sleep(0)
        return prof

    with local(1) as client:
        recording = asyncio.run(asyncio.wait_for(main(), 30)).recording
        soon(lambda: remains.everywhere(client) == [], 10)
    assert len(recording.tasks()) == 1
    assert recording.coverage()["problems"] == []
    assert recording.complete


def test_two_clients_of_one_cluster_on_two_loops_are_one_recording() -> None:
    async def main(address: str) -> stageprof.profile:
        async with (
            stageprof.profile() as prof,
            Client(address, asynchronous=True) as mine,
        ):
            assert await mine.submit(inc, 2, pure=False) == 3
            future = client.submit(inc, 3, pure=False)
            assert await asyncio.to_thread(future.result) == 4
        return prof

    with local(1) as client:
        address = str(client.scheduler_info()["address"])
        recording = asyncio.run(asyncio.wait_for(main(address), 30)).recording
        soon(lambda: remains.everywhere(client) == [], 10)
    assert len(recording.tasks()) == 2
    assert recording.coverage()["problems"] == []


def test_what_a_coroutine_raises_gets_out_at_once() -> None:
    async def main() -> None:
        async with stageprof.profile():
            raise ValueError("of the program's own")

    with local(1) as client:
        with pytest.raises(ValueError, match="own"):
            asyncio.run(asyncio.wait_for(main(), 30))
        soon(lambda: remains.everywhere(client) == [], 10)
