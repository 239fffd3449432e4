"""A region that is no coroutine's, and a program in it that is: `asyncio.run(main())`."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import dask.base
import pytest
from dask import delayed
from distributed import Client, Lock

import clusters
import stageprof
from stageprof_runtime import context
from stageprof_runtime.seen import WAITS, look, loops_of
from stageprof_runtime.stage import STEP
from stageprof_runtime.stem import frames_of

ROUNDS, WORK = 4, 0.25


def work(i: int) -> int:
    time.sleep(WORK)
    return i


def address_of(client: Any) -> str:
    return str(client.scheduler.address)


async def one_by_one(client: Any) -> None:
    for i in range(ROUNDS):
        await client.gather(client.submit(work, i, pure=False))


async def both_at_once(client: Any) -> None:
    async def half() -> None:
        for i in range(ROUNDS):
            await client.submit(work, i, pure=False)

    await asyncio.gather(half(), half())


async def as_they_come(client: Any) -> None:
    from distributed import as_completed

    futures = [client.submit(work, i, pure=False) for i in range(2 * ROUNDS)]
    async for future in as_completed(futures):
        await future


@pytest.mark.cluster
@pytest.mark.parametrize("program", [one_by_one, both_at_once, as_they_come])
def test_what_coroutines_await_is_accounted_for_as_what_blocks(
    program: Callable[[Any], Awaitable[None]],
) -> None:
    """All of it was construction and `outside`: the loop's own work was taken for the caller's."""

    async def main(address: str) -> None:
        async with Client(address, asynchronous=True) as client:
            await program(client)

    with clusters.separate(2) as client, stageprof.profile() as prof:
        asyncio.run(main(address_of(client)))
    walls = prof.recording.stages()["wall_s"]
    assert walls["execution"] >= 0.9 * ROUNDS * WORK
    assert walls["construction"] < 0.2 * ROUNDS * WORK
    assert sum(walls) == pytest.approx(prof.recording.wall)


class Seen:
    """Notes what its thread's stack says while Dask makes a name for it."""

    def __init__(self, loops: int = 0) -> None:
        self.loops = loops
        self.state = (0, "")

    def __dask_tokenize__(self) -> str:
        frames = frames_of(sys._getframe())
        self.state = look(frames, 0, self.loops)
        self.count = loops_of(frames)
        return "seen"


def test_what_a_loop_runs_for_dask_is_no_construction() -> None:
    seen = Seen()

    async def main() -> None:
        asyncio.get_running_loop().call_soon(dask.base.tokenize, seen)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen.state == (WAITS, "")
    assert seen.count == 1


def test_what_a_coroutine_of_the_users_asks_of_dask_is() -> None:
    seen = Seen()

    async def main() -> None:
        dask.base.tokenize(seen)

    asyncio.run(main())
    assert seen.state[0] == STEP["tokenize"]
    assert seen.state[1].startswith(__file__)


def test_a_loop_around_the_region_is_not_the_programs() -> None:
    """A notebook's kernel runs cells in a callback of its own loop."""
    seen = Seen(loops=1)

    async def main() -> None:
        asyncio.get_running_loop().call_soon(dask.base.tokenize, seen)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen.state[0] == STEP["tokenize"]


def test_a_local_scheduler_does_nothing_while_a_coroutine_waits_for_its_tasks() -> None:
    """What an async region waits for is noted as the region's, and its loop's thread waits."""

    async def main() -> stageprof.profile:
        async with stageprof.profile(gil=False) as prof:
            pauses = [delayed(time.sleep)(0.1) for _ in range(6)]
            dask.compute(*pauses, scheduler="threads", num_workers=2)
        return prof

    steps = asyncio.run(main()).recording.steps().set_index("step")
    assert steps["busy_s"]["compute"] > 0.59
    assert steps["busy_s"]["local.loop"] < 0.1


class Slow:
    """An actor."""

    def asked(self, seconds: float) -> int:
        time.sleep(seconds)
        return 1


@pytest.mark.cluster
def test_what_else_coroutines_await_of_dask_is_accounted_for() -> None:
    """Actors, locks and what is scattered were the program's own time."""

    async def later(seconds: float, held: Any) -> None:
        await asyncio.sleep(seconds)
        await held.release()

    async def main(address: str) -> stageprof.profile:
        async with Client(address, asynchronous=True) as mine:
            actor = await mine.submit(Slow, actor=True)
            async with stageprof.profile(client=mine, gil=False) as prof:
                assert await actor.asked(0.4) == 1
                held = Lock("held")
                await held.acquire()
                giving = asyncio.ensure_future(later(0.4, held))
                async with Lock("held"):
                    pass
                await giving
                await mine.scatter(bytearray(50_000_000))
        return prof

    with clusters.local(1) as client:
        recording = asyncio.run(main(address_of(client))).recording
    steps = recording.steps().groupby("step")["wall_s"].sum()
    assert steps["compute"] == pytest.approx(0.4, abs=0.15)
    assert steps["wait.resource"] == pytest.approx(0.4, abs=0.15)
    assert steps["data.transfer"] > 0.01
    assert recording.stages()["wall_s"]["outside"] < 0.3


def test_a_region_may_end_in_another_task_than_it_began_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It logged an error of a ContextVar; the first task's waits were for ever the region's."""
    prof = stageprof.profile(gil=False)

    async def begins(entered: asyncio.Event, over: asyncio.Event) -> tuple[int, int]:
        await prof.__aenter__()
        entered.set()
        within = context.lane_number()
        await over.wait()
        return within, context.lane_number()

    async def ends(entered: asyncio.Event, over: asyncio.Event) -> None:
        await entered.wait()
        await prof.__aexit__(None, None, None)
        over.set()

    async def main() -> tuple[int, int]:
        events = asyncio.Event(), asyncio.Event()
        begun = asyncio.ensure_future(begins(*events))
        await asyncio.ensure_future(ends(*events))
        return await begun

    within, after = asyncio.run(main())
    assert within < 0
    assert after == 0
    assert caplog.records == []
    assert prof.recording.coverage()["dropped"] == {}


def test_what_goes_on_after_an_async_region_does_not_keep_what_its_task_gave() -> None:
    """A client that is started in a region lives in a copy of its context, as all of its tasks."""

    class Large:
        """Something that the task gives."""

    async def region(kept: list[Any]) -> Large:
        async with stageprof.profile(gil=False):
            kept.append(contextvars.copy_context())
        return Large()

    async def main() -> bool:
        kept: list[Any] = []
        task = asyncio.ensure_future(region(kept))
        given = weakref.ref(await task)
        del task
        await asyncio.sleep(0)
        gc.collect()
        assert kept
        return given() is None

    assert asyncio.run(main())
