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

#: What watches now, by name.
_watches: Final[dict[str, Watch]] = {}
#: The watch of this process, if there is one; the probe `native` asks more of it.
watching: Final[list[Watcher]] = []
#: Seconds between two looks whether it has ended, and the most of them.
_LOOK_S, _MOST = 0.005, 600


def install(emit: Emit) -> Undo:
    """Watch from now on."""
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
    process.again[install] = watcher.tell

    def undo() -> None:
        watching.remove(watcher)
        _watches.clear()
        watcher.stop()
        ticker.stop()

    return undo


async def ended() -> None:
    """Let the watch end while the event loop goes on, if no other session needs it.

    To be awaited before the probe is taken away: that would wait for it on the loop's thread.
    """
    if process.uses(install) == 1:
        await until(lambda: all(watcher.end() for watcher in watching))


async def until(done: Callable[[], bool]) -> None:
    """Wait for something, but not for long."""
    for _ in range(_MOST):
        if done():
            return
        await asyncio.sleep(_LOOK_S)


def watches() -> dict[str, Watch]:
    """What is known of this process's watch: looks, seconds, failures."""
    return dict(_watches)
