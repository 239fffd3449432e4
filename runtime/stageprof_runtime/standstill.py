"""No garbage collection while another thread's frames are looked at, before Python 3.12.

There a collection may begin while CPython makes the object of such a frame. What it calls (a
finalizer, one of `gc.callbacks`) may let go of the GIL, the other thread returns from the function,
and CPython goes on with a frame that is gone (python/cpython#97002). Later versions collect only
where this cannot happen.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

_NEEDED: Final = sys.version_info < (3, 12)


class uncollected:  # noqa: N801 (used like a function)
    """A block of some hundred microseconds in which nothing is collected."""

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        self._was = _NEEDED and gc.isenabled()
        if self._was:
            gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._was:
            gc.enable()
