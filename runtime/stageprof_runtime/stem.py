"""What of a stack is told: from the task's function, or from where the region began, inward.

Outside it are the frames of Dask, of thread pools and of whatever runs the user's program, which
are the same in every look and would only make the tree deeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Final

from stageprof_runtime.lines import DASK, LIBRARY, USER, kind

#: Frames of one stack that are walked; a recursion that is deeper has no known beginning.
MOST: Final = 5_000
#: Our own files whose function is right outside a task's.
_BOTTOM: Final = (
    "probes/execution.py", "probes.execution>",
    "stageprof_runtime/computation.py", "stageprof_runtime.computation>",
)  # fmt: skip
#: Files of Dask's that call a task's function and do nothing else.
_CARRIERS: Final = (
    "dask/_task_spec.py", "dask/local.py", "dask/core.py", "dask/optimization.py",
    "distributed/worker.py", "distributed/utils.py",
)  # fmt: skip

#: Functions of ours that begin a region and are gone when it has begun.
_BEGINNING: Final = frozenset({"start", "_start", "_open", "__enter__", "__aenter__"})

#: file -> whether it is a carrier, and whether it is a bottom
_carriers: dict[str, tuple[bool, bool]] = {}


def frames_of(frame: FrameType | None) -> list[FrameType]:
    """The frames from one outward, the innermost first."""
    frames: list[FrameType] = []
    while frame is not None and len(frames) < MOST:
        frames.append(frame)
        frame = frame.f_back
    return frames


def of_task(frames: Sequence[FrameType]) -> Sequence[FrameType]:
    """A task's stack from its function inward; innermost first."""
    return frames[: function_at([frame.f_code.co_filename for frame in frames]) + 1]


def in_task(file: str) -> bool:
    """Whether a function of this file stands right outside a task's, and nowhere else."""
    return _role(file)[1]


def function_at(files: Sequence[str]) -> int:
    """Where in a task's stack its function is, from the files of the frames, innermost first.

    The function is the user's, where that is the first thing that Dask calls; else Dask's own.
    """
    end = next((i for i, file in enumerate(files) if _role(file)[1]), len(files))
    foreign = (i for i in range(end - 1, -1, -1) if not _is_dask(files[i]))
    outermost = next(foreign, -1)
    if outermost < 0 or kind(files[outermost]) != USER:
        own = (i for i in range(end - 1, -1, -1) if not _role(files[i])[0])
        outermost = next(own, 0)
    return outermost


def _is_dask(file: str) -> bool:
    return kind(file) == DASK or _role(file)[0]


def _role(file: str) -> tuple[bool, bool]:
    known = _carriers.get(file)
    if known is None:
        plain = file.replace("\\", "/")
        carries = plain.endswith(_CARRIERS) or "stageprof_runtime" in plain
        bottom = any(part in plain for part in _BOTTOM)
        known = _carriers[file] = carries, bottom
    return known


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(("stageprof.", "stageprof_runtime."))


def _is_face(frame: FrameType) -> bool:
    """Whether a function is of the package `stageprof`; by module, for users have such folders."""
    return str(frame.f_globals.get("__name__")).startswith("stageprof.")


class Stem:
    """Where a region began: what was on its thread's stack then is the same in all its looks."""

    def __init__(self, frames: Sequence[FrameType]) -> None:
        """A stem.

        Args:
            frames: the stack when the region began, innermost first; ours on top of it are gone
                soon and do not count.
        """
        inner = 0
        while inner < len(frames) - 1 and _is_ours(frames[inner]):
            inner += 1
        # Numbers, not frames: those would keep the variables of the user's functions alive.
        self._base = [(id(f), id(f.f_code)) for f in reversed(frames[inner:])]
        #: whether functions of ours stay around what the region calls: a command's, a decorator's
        self._around = any(_is_face(f) and f.f_code.co_name not in _BEGINNING for f in frames)

    def rest(self, frames: Sequence[FrameType]) -> Sequence[FrameType]:
        """A stack from the function that began the region inward; innermost first."""
        end = len(frames)
        for (frame, code), there in zip(self._base, reversed(frames), strict=False):
            if id(there) != frame or id(there.f_code) != code:
                break
            end -= 1
        end = min(end + 1, len(frames))
        if self._around:
            end = next((i for i in range(end) if _is_face(frames[i])), end)
        while end > 1 and kind(frames[end - 1].f_code.co_filename) == LIBRARY:
            end -= 1
        return frames[:end]
