"""Coroutines of ours on loops of others: whatever becomes of them, nobody complains."""

from __future__ import annotations

import asyncio
import gc

import pytest

from stageprof_runtime.coroutines import Coroutines
from stageprof_runtime.guard import Watch


def test_nothing_complains_of_one_that_ends_before_it_began() -> None:
    """A loop that ends, by `sys.exit` of what it runs for one, has its tasks cancelled."""
    asked = []

    async def ours() -> None:
        asked.append(1)

    async def main() -> None:
        coroutines = Coroutines(Watch("h"))
        task = coroutines.later(ours)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await coroutines.later(ours)

    asyncio.run(main())
    assert asked == [1]


def test_they_are_kept_until_they_are_done_and_counted_so_long() -> None:
    """What nobody refers to may be collected while it waits."""

    async def main() -> None:
        coroutines, may_end = Coroutines(Watch("h")), asyncio.Event()
        for _ in range(2):
            coroutines.later(may_end.wait)
        gc.collect()
        assert len(coroutines) == 2
        ours = asyncio.all_tasks() - {asyncio.current_task()}
        may_end.set()
        await asyncio.wait(ours)
        assert not coroutines

    asyncio.run(main())


def test_what_one_raises_is_counted_and_goes_no_further() -> None:
    watch = Watch("h")

    async def ours() -> None:
        raise SystemExit

    async def main() -> None:
        await Coroutines(watch).later(ours)

    asyncio.run(main())
    assert watch.failures == 1


def test_what_fails_before_there_is_a_coroutine_goes_no_further_either() -> None:
    watch = Watch("h")

    def ours() -> asyncio.Future[None]:
        raise MemoryError

    async def main() -> None:
        await Coroutines(watch).later(ours)

    asyncio.run(main())
    assert watch.failures == 1
