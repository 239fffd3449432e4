"""Clients that start or close while a session is on: recorded from their start to their end.

A cluster that is closed takes its scheduler along: what is left there is fetched before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from distributed import Client

from stageprof_runtime.compat import patience_s, place
from stageprof_runtime.guard import Watch, quietly
from stageprof_runtime.patch import Emit, Undo, replace, together

_Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Follower(Protocol):
    """What wants to know of clients."""

    async def started(self, client: Any) -> None:
        """A client has connected; awaited on its loop."""

    async def closing(self, client: Any) -> None:
        """A client is about to close, or its cluster; awaited on the client's loop."""

    async def ending(self, cluster: Any) -> None:
        """A cluster is about to close; awaited on its loop."""


followers: Final[list[Follower]] = []
WATCH: Final = Watch("client.follow")
#: Seconds that joining a cluster may take before the run goes on without it.
PATIENCE_S: Final = 15.0
#: client that is about to close -> seconds after which its `close` raises, as it was told
_told: Final[WeakKeyDictionary[Any, float]] = WeakKeyDictionary()


def install(emit: Emit) -> Undo:
    """Tell the followers of every client that starts or closes from now on."""
    return together(
        [
            replace(*place("client.start"), _started, limited=False),
            replace(*place("client.close"), _first(_in_time), limited=False),
            replace(*place("client.shutdown"), _first(_in_time), limited=False),
            replace(*place("cluster.close"), _first(_before), limited=False),
            replace(Client, "close", _asked_to_close),
        ]
    )


def _started(start: Callable[..., Any]) -> Callable[..., Any]:
    async def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = await start(self, *args, **kwargs)
        for follower in tuple(followers):
            await quietly(asyncio.wait_for(follower.started(self), PATIENCE_S), WATCH)
        return result

    return told


def _asked_to_close(close: Callable[..., Any]) -> Callable[..., Any]:
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        timeout = args[0] if args else kwargs.get("timeout")
        if isinstance(timeout, int | float) and timeout > 0:
            _told[self] = timeout
        return close(self, *args, **kwargs)

    return noted


async def _in_time(follower: Follower, client: Any) -> None:
    """As long as leaves the client as much again: then its `close` raises."""
    patience = patience_s(client)
    await asyncio.wait_for(follower.closing(client), min(patience, _told.get(client, 60) / 2))


async def _before(follower: Follower, cluster: Any) -> None:
    await asyncio.wait_for(follower.ending(cluster), PATIENCE_S)


def _first(leave: Callable[[Follower, Any], Coroutine[Any, Any, None]]) -> _Wrap:
    """What closes something, after all followers have left it."""

    def closing(close: Callable[..., Any]) -> Callable[..., Any]:
        async def told(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                for follower in tuple(followers):
                    await quietly(leave(follower, self), WATCH)
            except asyncio.CancelledError:  # who closes it waits no longer: it is closed still
                await close(self, *args, **kwargs)
                raise
            return await close(self, *args, **kwargs)

        return told

    return closing
