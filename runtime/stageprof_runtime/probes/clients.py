"""Clients that start or close while a session is on: recorded from their start to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from stageprof_runtime.compat import patience_s, place
from stageprof_runtime.guard import Watch, quietly
from stageprof_runtime.patch import Emit, Undo, replace, together


class Follower(Protocol):
    """What wants to know of clients."""

    async def started(self, client: Any) -> None:
        """A client has connected; awaited on its loop."""

    async def closing(self, client: Any) -> None:
        """A client is about to close; awaited on its loop."""


followers: Final[list[Follower]] = []
WATCH: Final = Watch("client.follow")
#: Seconds that joining a cluster may take before the run goes on without it.
PATIENCE_S: Final = 15.0


def install(emit: Emit) -> Undo:
    """Tell the followers of every client that starts or closes from now on."""
    return together(
        [
            replace(*place("client.start"), _started, limited=False),
            replace(*place("client.close"), _closing, limited=False),
        ]
    )


def _started(start: Callable[..., Any]) -> Callable[..., Any]:
    async def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = await start(self, *args, **kwargs)
        for follower in tuple(followers):
            await quietly(asyncio.wait_for(follower.started(self), PATIENCE_S), WATCH)
        return result

    return told


async def _in_time(follower: Follower, client: Any) -> None:
    """As long as leaves the client as much again: then its `close` raises."""
    await asyncio.wait_for(follower.closing(client), patience_s(client))


def _closing(close: Callable[..., Any]) -> Callable[..., Any]:
    async def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            for follower in tuple(followers):
                await quietly(_in_time(follower, self), WATCH)
        except asyncio.CancelledError:  # who closes it waits no longer: it is closed all the same
            await close(self, *args, **kwargs)
            raise
        return await close(self, *args, **kwargs)

    return told
