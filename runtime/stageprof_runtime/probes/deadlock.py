"""Before Python 3.12, nothing is collected while anybody in this process asks for frames.

Dask's own profiler asks for those of all threads, a hundred times a second, and ours ask beside it.
What may happen then is told in `standstill`: for ours it is not enough to collect nothing
themselves, for they would wait for Dask's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType

from stageprof_runtime.compat import place
from stageprof_runtime.guard import Watch
from stageprof_runtime.patch import Emit, Undo, observe
from stageprof_runtime.standstill import NEEDED, uncollected

Frames = Callable[[], dict[int, FrameType]]


def install(_: Emit) -> Undo:
    """Have `sys._current_frames` collect nothing from now on; before any of ours is called."""
    return observe(*place("python.frames"), _quiet) if NEEDED else lambda: None


def _quiet(frames: Frames, _: Watch) -> Frames:
    @functools.wraps(frames)
    def _current_frames() -> dict[int, FrameType]:
        with uncollected():
            return frames()

    return _current_frames
