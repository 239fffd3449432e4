"""Whether a count that grew is worth a failed build.

Two tasks more are none, however few there were; and what makes a program faster is none, however
many they are. A graph of ten times as many tasks is one on a machine that hides it, too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

#: What takes less than this at what is usual, nobody notices: seconds, and a share of the wall time
#: (that below which times are not tested).
LEAST_S: Final = 0.01
LEAST: Final = 0.005
#: What is so many times as much is worth it from `LEAST_S` on: with other data it is more.
MANIFOLD: Final = 10
#: By so much all recordings of a side must be faster than all of the other, where too few were made
#: to judge times.
PLAIN: Final = 0.2


class Why(StrEnum):
    """Why a count that changed says nothing."""

    NONE = ""
    #: what is more of it takes no time that anybody notices
    LITTLE = "little"
    #: there is more of it, but the program is faster
    FASTER = "faster"


class Walls(NamedTuple):
    """The wall times that counts are seen beside."""

    #: the baseline's, in the middle, seconds
    before_s: float
    #: whether they were judged to be better; whether too few were made for that, and all of one
    #: side are plainly better than all of the other
    better: bool = False
    plainly: bool = False

    def against(self, before: float, after: float, each_s: float) -> Why:
        """What speaks against calling it worse that there is more of something.

        Args:
            before: how many there were.
            after: how many there are.
            each_s: seconds that one takes.
        """
        if self.little(before, after, each_s):
            return Why.LITTLE
        faster = self.better or (self.plainly and after < MANIFOLD * before)
        return Why.FASTER if faster else Why.NONE

    def little(self, few: float, many: float, each_s: float) -> bool:
        """Whether nobody notices so many more."""
        more_s = (many - few) * each_s
        if more_s < LEAST_S:
            return True
        return more_s < LEAST * self.before_s and many < MANIFOLD * few


def plainly(before_s: list[float], after_s: list[float]) -> bool:
    """Whether all wall times of one side are plainly below all of the other."""
    return max(after_s) < min(before_s) * (1 - PLAIN)
