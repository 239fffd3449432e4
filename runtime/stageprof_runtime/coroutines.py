"""Coroutines of ours on loops of Dask's: quiet, and kept until they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from stageprof_runtime.guard import Watch, quietly


class Coroutines:
    """Those of one owner that are not done; loops keep no reference to their tasks.

    Whatever they raise is a failure of `watch`, and goes no further.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def later(self, doing: Callable[[], Awaitable[Any]]) -> asyncio.Task[None]:
        """Begin one in a task of its own, on the loop of this thread.

        It is asked for once that runs: a coroutine that nothing ever runs complains of it, and
        loops end before their tasks have begun.
        """
        task = asyncio.ensure_future(self._asked(doing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _asked(self, doing: Callable[[], Awaitable[Any]]) -> None:
        async def begun() -> None:
            await doing()  # which may fail before there is anything to await

        await quietly(begun(), self._watch)
