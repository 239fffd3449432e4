"""Watches the GIL of this process: from outside where that is allowed, else by asking for it.

See `stageprof_runtime.gil`. What the watch itself costs is under `gil`, `gil.watch` (another
process's time) and `gil.py-spy` in the coverage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from stageprof_runtime import process
from stageprof_runtime.gil.ticker import Ticker
from stageprof_runtime.gil.watcher import ANY, Watcher
from stageprof_runtime.guard import Watch
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.ring import Ring

#: What watches now, by name.
_watches: Final[dict[str, Watch]] = {}
#: The watch of this process, if there is one, and before it those that have ended; the probe
#: `native` asks more of it.
watching: Final[list[Watcher]] = []
#: Seconds between two looks whether it has ended, and the most of them.
_LOOK_S, _MOST = 0.005, 600


def install(emit: Emit) -> Undo:
    """Watch from now on."""
    begun: list[tuple[Watcher, Ticker]] = []

    def undo() -> None:
        _watches.clear()
        for watcher, ticker in begun:
            watching.remove(watcher)
            watcher.stop()
            ticker.stop()

    def tell(ring: Ring) -> None:
        if begun[-1][0].is_over:  # its last session was about to end it when this one began
            begun.append(_begin(emit))
        begun[-1][0].tell(ring)

    begun.append(_begin(emit))
    process.again[install] = tell
    return undo


def _begin(emit: Emit) -> tuple[Watcher, Ticker]:
    watcher, ticker = Watcher(emit), Ticker(emit, ANY)
    _watches.update({watch.name: watch for watch in (*watcher.watches, ticker.watch)})
    watcher.instead = ticker.start
    try:
        watcher.start()
    except BaseException:
        _watches.clear()
        watcher.stop()
        raise
    watching.append(watcher)
    return watcher, ticker


async def ended() -> None:
    """Let the watch end while the event loop goes on, if no other session needs it.

    To be awaited before the probe is taken away: that would wait for it on the loop's thread.
    """
    if process.uses(install) == 1:
        mine = list(watching)  # one that begins meanwhile is another session's
        await until(lambda: all(watcher.end() for watcher in mine))


async def until(done: Callable[[], bool]) -> None:
    """Wait for something, but not for long."""
    for _ in range(_MOST):
        if done():
            return
        await asyncio.sleep(_LOOK_S)


def watches() -> dict[str, Watch]:
    """What is known of this process's watch: looks, seconds, failures."""
    return dict(_watches)
