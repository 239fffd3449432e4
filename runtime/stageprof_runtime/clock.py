"""The clock of a place: monotonic nanoseconds, never shared between machines.

Dask's own stamps are wall time plus an offset guessed from the last heartbeat, so they are not
used. Every probe reads this clock; collectors align the clocks of places afterwards, from the
round trips recorded as PING events.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, ModuleSpec
from importlib.util import module_from_spec

# Tests that stop the clock (freezegun) look through every module for the very functions of
# `time`. These are the same C functions of a second copy of that module: they are not found,
# and a call costs no more.
_time = module_from_spec(ModuleSpec("time", BuiltinImporter()))

#: Nanoseconds of this process's monotonic clock.
now_ns: Callable[[], int] = _time.perf_counter_ns
#: Nanoseconds of CPU that the calling thread has used.
thread_ns: Callable[[], int] = time.thread_time_ns
