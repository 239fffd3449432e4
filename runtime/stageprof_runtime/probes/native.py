"""Has the watch of this process ask py-spy for C frames while tasks run; only where it is asked to.

py-spy must pause the process for each look: nothing else of stageprof does. What it costs is under
`gil.py-spy` in the coverage; what it saw is told by the watch's own side (`gil.watcher`).
"""

from __future__ import annotations

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.gil.watcher import ANY, C_FRAMES
from stageprof_runtime.measured import OFF
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.probes import gil


def install(emit: Emit) -> Undo:
    """Have C frames looked at from now on; the probe `gil` must be there."""
    watchers = list(gil.watching)
    if not watchers:
        raise RuntimeError("nobody watches this process")
    for watcher in watchers:
        watcher.native = True

    def undo() -> None:
        for watcher in watchers:
            watcher.native = False
            if watcher.blind:
                emit.row(ANY, (MARK, now_ns(), OFF, f"{C_FRAMES}: {watcher.blind}"[:300]))

    return undo
