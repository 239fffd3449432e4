"""What a thread waited for in Dask while it waited for other threads of its process.

Dask's own loop is one of them: each key's arrival ended a wait. The rest of the time is the user's
own. Coroutines of one thread wait for locks at once, as many as there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from stageprof_collectors.account.block import LATE_NS, Block


def behind(
    locks: Sequence[Block], calls: Iterable[Block], came: Iterable[tuple[int, str]]
) -> Iterator[Block]:
    """The waits within locks: without the thread's own calls, until each key came.

    Of locks held at once those that say the same are said once, or each would be as many waits as
    keys came.

    Args:
        locks: of one thread, in order.
        calls: its other blocking calls, in order.
        came: keys that came to it, and when, in order.
    """
    starts = [lock.start for lock in locks]
    longest = list(accumulate(locks, _longer))
    for begin, t, key in _waits(calls, came):
        first = bisect_right(starts, begin)
        since = longest[first - 1 : first] if first else []
        for lock in (*since, *locks[first : bisect_left(starts, t)]):
            start = max(lock.start, begin)
            if start < lock.stop and t <= lock.stop + LATE_NS:
                yield lock._replace(start=start, stop=min(t, lock.stop), awaited=t, key=key)


def _longer(one: Block, other: Block) -> Block:
    return one if one.stop >= other.stop else other


def _waits(
    calls: Iterable[Block], came: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Where no call was: since the last key or call, until a key came, which it was."""
    coming = iter(came)
    t, key = next(coming, (None, ""))
    for now, end in _between(calls):
        begin = now
        while t is not None and (end is None or t <= end):
            if t > begin:
                yield begin, t, key
                begin = t
            t, key = next(coming, (None, ""))


def _between(calls: Iterable[Block]) -> Iterator[tuple[int, int | None]]:
    """The time before, between and after calls (ns), which may hold others."""
    now = 0
    for call in calls:
        if call.start > now:
            yield now, call.start
        now = max(now, call.stop)
    yield now, None
