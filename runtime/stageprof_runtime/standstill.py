"""No garbage collection while another thread's frames are looked at, before Python 3.12.

There a collection may begin while CPython makes the object of such a frame. What it calls (a
finalizer, one of `gc.callbacks`) may let go of the GIL. Then the other thread returns from the
function, and CPython goes on with a frame that is gone (python/cpython#97002). Or it asks for
frames itself, or ends, and waits for a lock that is held here, and does so with the GIL: the
process stands still for ever (python/cpython#106883). Later versions collect only where neither
can happen.

Collections are put off by their threshold and not by `gc.disable`: a program that turns them off
meanwhile has them off, and one that asks whether they are on, to turn them on again later, is told
the truth.
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
#: the program's threshold of the youngest when the first came; 0 where it never collects them
_was = 0


class uncollected:  # noqa: N801 (used like a function)
    """A block of some hundred microseconds in which nothing is collected."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _inside, _was  # noqa: PLW0603 (there is one collector, too)
        if NEEDED:
            with _lock:
                now = gc.get_threshold()[0]
                _was = now if now or not _inside else _was
                _inside += 1
                gc.set_threshold(0)

    def __exit__(self, *error: object) -> None:
        global _inside  # noqa: PLW0603
        if NEEDED:
            with _lock:
                _inside -= 1
                if not _inside:
                    _give_back()


def _give_back() -> None:
    """The program's threshold, unless it has set another one meanwhile."""
    if not gc.get_threshold()[0]:
        gc.set_threshold(_was)


def _after_fork() -> None:
    """Whoever was in such a block is in the parent."""
    global _lock, _inside  # noqa: PLW0603
    _lock = threading.RLock()
    if _inside:
        _give_back()
    _inside = 0


if NEEDED and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
