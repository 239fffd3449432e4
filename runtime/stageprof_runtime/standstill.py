"""No garbage collection while another thread's frames are looked at, before Python 3.12.

There a collection may begin while CPython makes the object of such a frame. What it calls (a
finalizer, one of `gc.callbacks`) may let go of the GIL. Then the other thread returns from the
function, and CPython goes on with a frame that is gone (python/cpython#97002). Or it asks for
frames itself, or ends, and waits for a lock that is held here, and does so with the GIL: the
process stands still for ever (python/cpython#106883). Later versions collect only where neither
can happen.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import Final

NEEDED: Final = sys.version_info < (3, 12)

#: Several threads may be in such blocks at once: the first ends collecting, the last has it go on.
#: A finalizer may look at frames, too, so that a thread may come here twice.
_lock = threading.RLock()
_inside = 0
#: whether the program had collections on when the first came
_was = False


class uncollected:  # noqa: N801 (used like a function)
    """A block of some hundred microseconds in which nothing is collected."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _inside, _was  # noqa: PLW0603 (there is one collector, too)
        if NEEDED:
            with _lock:
                _was = _was if _inside else gc.isenabled()
                _inside += 1
                gc.disable()

    def __exit__(self, *error: object) -> None:
        global _inside  # noqa: PLW0603
        if NEEDED:
            with _lock:
                _inside -= 1
                if _was and not _inside:
                    gc.enable()


def _after_fork() -> None:
    """Whoever was in such a block is in the parent."""
    global _lock, _inside  # noqa: PLW0603
    _lock = threading.RLock()
    if _inside and _was:
        gc.enable()
    _inside = 0


if NEEDED and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
