"""What is known of a function's code, which is asked for at every look at a stack.

It is found by the code's identity, for hashing code reads all of it; the code is kept beside it, so
that its number stays its own. Only so many are, for a task's function is unpickled anew for each
task.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Generic, TypeVar

Fact = TypeVar("Fact")


class Codes(Generic[Fact]):
    """What `judge` says of codes; of the `most` that were asked for since it forgot them all."""

    def __init__(self, judge: Callable[[CodeType], Fact], most: int) -> None:
        self._judge = judge
        self._most = most
        self._known: dict[int, tuple[Fact, CodeType]] = {}

    def of(self, code: CodeType) -> Fact:
        """What is known of a code; threads may ask at once."""
        known = self._known.get(id(code))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(code)] = self._judge(code), code
        return known[0]
