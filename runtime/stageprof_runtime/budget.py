"""How long looking at what a graph holds may take, beside the program that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from stageprof_runtime.clock import now_ns, thread_ns

#: So many ns, or this share of the time that has passed. It is the thread's own time that counts,
#: not that in which others had the processor.
FLOOR_NS: Final = 50_000_000
SHARE: Final = 0.01

T = TypeVar("T")


class Budget:
    """What is left of it."""

    def __init__(self, spent: list[int]) -> None:
        #: [looks, ns], so far
        self.spent = spent
        self._began = now_ns()

    def left(self, now: int, part: float = 1.0) -> int:
        """Nanoseconds that looking may still take, if this part may be used; maybe below 0."""
        return int(part * max(FLOOR_NS, SHARE * (now - self._began))) - self.spent[1]

    def spend(self, ns: int) -> None:
        """Looking took this long."""
        self.spent[0] += 1
        self.spent[1] += ns


def in_time(values: Iterable[T], until: int, stride: int = 1) -> Iterator[T]:
    """The values that come before this instant of the thread's own clock, looked at each stride."""
    for i, value in enumerate(values):
        if i % stride == 0 and thread_ns() > until:
            return
        yield value


__all__ = ["FLOOR_NS", "SHARE", "Budget", "in_time"]
