"""A blocking call of the client's: when it waited, and for what."""

from __future__ import annotations

from typing import Final, NamedTuple

from stageprof_runtime.underway import GAVE_UP

#: A lock may have been waited for so much longer than was seen, ns: looks are as far apart.
LATE_NS: Final = 100_000_000
#: Who gives up sooner asks again and again, ns; to look for what goes on then takes a while.
LONG_NS: Final = 50_000_000
#: Calls that fetch what they waited for, unless it never came.
_FETCH: Final = frozenset({"_gather", "gather"})
#: The call that brings data to the workers: it waits for no task.
SCATTER: Final = "_scatter"
#: `awaited` of a call that went on when the recording ended.
STILL: Final = -1


class Block(NamedTuple):
    """A blocking call: when (aligned ns), whose thread, which call, and what it waited for.

    `awaited`: when the last key that it needed arrived, 0 if that is not known, STILL if it went
    on when the recording ended; `gather` to `gathered`: when it fetched results, 0 if it did not;
    `given_up`: it is known to have ended before that.
    """

    start: int
    stop: int
    place: int
    thread: int
    call: str
    awaited: int
    gather: int
    gathered: int
    key: str
    given_up: bool = False

    @property
    def gave_up(self) -> bool:
        """Whether what it waited for never came, and it ended; in older recordings, probably."""
        if self.given_up:
            return True
        waited = self.stop - max(self.start, self.awaited)
        asked = self.call in _FETCH and self.awaited != STILL
        return asked and not self.gather and waited >= LONG_NS


def named(block: Block, call: str) -> Block:
    """The block by its call's name, and whether it gave up.

    With an error of this kind a task may have ended as well: that came just before.
    """
    came = block.awaited > 0 and block.stop - block.awaited < LATE_NS
    long = block.stop - block.start >= LONG_NS
    given_up = call.endswith(GAVE_UP) and long and not came
    return block._replace(call=call.removesuffix(GAVE_UP), given_up=given_up)
