"""Has the watch of this process ask py-spy for C frames while tasks run; only where it is asked to.

py-spy must pause the process for each look: nothing else of stageprof does. What it costs is under
`gil.py-spy` in the coverage; what it saw is told by the watch's own side (`gil.watcher`).
"""

from __future__ import annotations

from stageprof_runtime import process
from stageprof_runtime.gil.rows import unseen
from stageprof_runtime.gil.watcher import ANY, PATIENCE_S, Watcher
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.probes import gil
from stageprof_runtime.ring import Ring


def install(emit: Emit) -> Undo:
    """Have C frames looked at from now on; the probe `gil` must be there."""
    if not gil.watching:
        raise RuntimeError("nobody watches this process")

    def begin(ring: Ring | None = None) -> None:
        for watcher in tuple(gil.watching):
            watcher.native = True
            if watcher.unseen and ring is not None:
                ring.emit(unseen(watcher.unseen))

    def undo() -> None:
        for watcher in tuple(gil.watching):
            watcher.native = False
            if watcher.blind:
                emit.row(ANY, unseen(watcher.blind))

    begin()
    process.again[install] = begin
    return undo


def settle() -> None:
    """Have told what was seen so far; for a session that ends before the watch does."""
    for watcher in _asked():
        watcher.rested.wait(PATIENCE_S)
        watcher.native = process.uses(install) > 1


async def settled() -> None:
    """The same while the event loop goes on."""
    for watcher in _asked():
        await gil.until(watcher.rested.is_set)
        watcher.native = process.uses(install) > 1


def _asked() -> list[Watcher]:
    """Who is asked to; nobody where this session's end is the watch's, which tells by itself."""
    if not process.uses(install) or process.uses(gil.install) == 1:
        return []
    for watcher in gil.watching:
        watcher.rest()
    return list(gil.watching)
