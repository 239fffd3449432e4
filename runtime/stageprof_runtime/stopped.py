"""What a thread is doing, told from the instruction at which its innermost frame stands.

As `stack` has it for tasks, but of any code, also a library's, because in a tree of stacks every
frame counts:

    python      it stopped where CPython gives the GIL up between two steps: it runs bytecode
    call        it stopped at a call, and whoever held the GIL was in no hurry to give it
    library     it is in C code without the GIL
    waiting     as the last two, but the thread used next to nothing of a processor lately

The kinds that are found from the whole stack (loops over rows, arrays of objects) stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from stageprof_runtime.instruction import Instruction
from stageprof_runtime.stack import CALL, LIBRARY, PYTHON, SMALL
from stageprof_runtime.unlocked import unlocked

WAITING: Final = "waiting"
#: A thread waits if it used less than this part of its share of a processor.
IDLE: Final = 0.1

#: The processor clock of the calling thread, by its identifier; 0 where there is none. To be asked
#: by the thread itself: the clock of a thread that is gone crashes the process, while reading one
#: by its number fails as it should.
clock_of: Final[Callable[[int], int]] = getattr(time, "pthread_getcpuclockid", lambda _: 0)


def used_ns(clock: int) -> int:
    """What a thread has used of processors so far; -1 if that cannot be told (it may be gone)."""
    try:
        return time.clock_gettime_ns(clock) if clock else -1
    except (OSError, OverflowError):
        return -1


def idle(used: int, wall: int, threads: int) -> bool:
    """Whether a thread used next to nothing (-1: unknown) in a time that it shared with others."""
    return 0 <= used < IDLE * wall / max(threads, 1)


def work(frame: FrameType, how: str, *, waited: bool, idling: bool, at: int | None = None) -> str:
    """What a thread does at its innermost frame.

    Args:
        frame: the innermost frame.
        how: what `stack.judge` says of the whole stack; "" if it was not asked.
        waited: whether the GIL was waited for as for bytecode, as for `judge`.
        idling: what `idle` says.
        at: the offset at which it stood, as for `judge`.
    """
    if how not in ("", LIBRARY, CALL, SMALL):
        return how
    stood = Instruction(frame, at)
    if stood.between:
        return PYTHON
    if idling:
        return WAITING
    return CALL if waited and (stood.call or unlocked()) else LIBRARY
