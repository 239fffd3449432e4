"""Watches the GIL of this process: from outside where that is allowed, else by asking for it.

See `stageprof_runtime.gil`. What the watch itself costs is under `gil`, `gil.watch` (another
process's time) and `gil.py-spy` in the coverage.
"""

from __future__ import annotations

from typing import Final

from stageprof_runtime.gil.ticker import Ticker
from stageprof_runtime.gil.watcher import ANY, Watcher
from stageprof_runtime.guard import Watch
from stageprof_runtime.patch import Emit, Undo

#: What watches now, by name.
_watches: Final[dict[str, Watch]] = {}


def install(emit: Emit) -> Undo:
    """Watch from now on."""
    watcher, ticker = Watcher(emit), Ticker(emit, ANY)
    _watches.update({watch.name: watch for watch in (*watcher.watches, ticker.watch)})
    watcher.instead = ticker.start
    watcher.start()

    def undo() -> None:
        watcher.stop()
        ticker.stop()

    return undo


def watches() -> dict[str, Watch]:
    """What is known of this process's watch: looks, seconds, failures."""
    return dict(_watches)


def watching() -> bool:
    """Whether this process's numbers of the GIL are ours."""
    return bool(_watches)
