"""Counting every call in the region's thread, instead of looking at it: cProfile.

Until Python 3.11 cProfile watches the thread that turned it on. From 3.12 on it hears of all
threads of the process and mixes them up (a function of 0.9 s was read as 0.0005 s beside a busy
thread), and nobody else may turn one on meanwhile. There its own counters are fed from
`sys.setprofile`, which is the thread's; that costs half as much again.

One profile is kept for the whole region and shared out among the steps afterwards, see `called`.
One for each stage, switched where stages begin, was tried: when a profile is turned off cProfile
forgets which functions are running, and the time that they take after it is on again belongs to
nobody (a function of 0.3 s was read as 0.05 s).
"""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, Final

from stageprof_runtime.called import rows_of
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.ring import Ring

#: From here on cProfile is told of the calls of all threads.
_MIXES: Final = sys.version_info >= (3, 12)
#: How an observer that is off is told of, so that `coverage()` lists it.
_OFF: Final = "hook disabled"
#: Profiles in whose place another one was turned on: one that is let go turns off whatever is on.
_displaced: Final[list[cProfile.Profile]] = []


class Counting:
    """cProfile in one thread, from `begin` to `end`."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._thread = 0
        self._profile: cProfile.Profile | None = None
        #: what `sys.getprofile()` gives while we count
        self._ours: Any = None
        self.watch = Watch("deterministic")

    def begin(self) -> None:
        """Count the calling thread's calls from now on, unless another profiler does."""
        attempt(self.watch, self._begin)

    def end(self) -> None:
        """Count no more, and tell what was counted; raises nothing."""
        profile, self._profile = self._profile, None
        if profile is not None:
            attempt(self.watch, self._end, profile)

    def _begin(self) -> None:
        other = _other()
        if other:
            self._say(f"{other} is on in this thread; calls are not counted")
            return
        profile = cProfile.Profile()
        if _MIXES:
            hook = self._ours = _hook(profile)
            self._thread, self._profile = get_ident(), profile
            sys.setprofile(hook)
        else:
            self._ours, self._thread, self._profile = profile, get_ident(), profile
            profile.enable()

    def _end(self, profile: cProfile.Profile) -> None:
        if get_ident() != self._thread:
            self._say("the region ended in another thread than it began; calls are not counted")
            return
        if sys.getprofile() is self._ours:
            sys.setprofile(None)
        else:  # theirs stays
            self._say("another profiler was turned on meanwhile; calls before that are counted")
            _displaced.append(profile)
        for row in rows_of(profile.getstats()):
            self._ring.emit(row)
        profile.clear()

    def _say(self, why: str) -> None:
        self._ring.emit((MARK, now_ns(), _OFF, f"deterministic: {why}"))


def _other() -> str:
    """The profiler that is on in this thread; "" if there is none."""
    there: Any = sys.getprofile()
    if there is not None:
        return f"another profiler ({type(there).__name__})"
    if _MIXES:
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 (unknown to 3.11's types)
        tool = monitoring.get_tool(monitoring.PROFILER_ID)
        return f"another profiler ({tool})" if tool else ""
    return ""


def _hook(profile: Any) -> Callable[[FrameType, str, Any], None]:
    """What feeds cProfile's counters with the calls of one thread.

    Raises:
        AttributeError: this Python's cProfile has no such counters.
    """
    enter, leave = profile._pystart_callback, profile._pyreturn_callback
    enter_c, leave_c = profile._ccall_callback, profile._creturn_callback
    missing = getattr(sys, "monitoring").MISSING  # noqa: B009 (unknown to 3.11's types)

    def hook(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            enter(frame.f_code, 0)
        elif event == "return":
            leave(frame.f_code, 0, None)
        elif event == "c_call":
            enter_c(None, 0, arg, missing)
        else:
            leave_c(None, 0, arg, missing)

    return hook
