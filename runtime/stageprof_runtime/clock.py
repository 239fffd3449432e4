"""The clock of a place: monotonic nanoseconds, never shared between machines.

Dask's own stamps are wall time plus an offset guessed from the last heartbeat, so they are not
used. Every probe reads this clock; collectors align the clocks of places afterwards, from the
round trips recorded as PING events.
"""

from __future__ import annotations

import time

#: Nanoseconds of this process's monotonic clock.
now_ns = time.perf_counter_ns
#: Nanoseconds of CPU that the calling thread has used.
thread_ns = time.thread_time_ns
