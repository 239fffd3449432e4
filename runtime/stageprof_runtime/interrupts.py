"""Errors that come out of our code and are the user's: something else raised them there.

Python calls a signal's handler, and raises what another thread has set for this one, between any
two instructions. If these are ours, what was meant to end the user's computation (Ctrl-C, a time
limit) would be taken for a failure of a hook.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Final

#: What threads may be ended with of what our code, and what it calls, might raise too.
_MEANT: Final = (SystemExit, KeyboardInterrupt, TimeoutError)
#: Packages whose other errors are their own.
_OWN: Final = sys.stdlib_module_names | {"stageprof_runtime"}


def interrupted(error: BaseException) -> bool:
    """Whether an error that came out of our code only fell into it, and is the user's to see."""
    return _by_hand(error) or _by_a_handler(error) or _by_a_thread(error)


def _by_hand(error: BaseException) -> bool:
    """Ctrl-C.

    `asyncio.run` catches the signal itself: in a thread that runs its loop it is no Ctrl-C. A loop
    that something else runs, such as a notebook's kernel, leaves it to Python.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and (
            asyncio._get_running_loop() is None
            or signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
    )


def _by_a_handler(error: BaseException) -> bool:
    """What the program's handler of a signal raised: an alarm is how many a time limit is kept."""
    if threading.current_thread() is not threading.main_thread():
        return False
    passed = {frame.f_code for frame in _frames(error)}
    return any(_code(signal.getsignal(number)) in passed for number in signal.valid_signals())


def _code(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not callable(handler):  # the default, or what was not set from Python
        return None
    function = handler if hasattr(handler, "__code__") else type(handler).__call__
    found = getattr(function, "__code__", None)
    return found if isinstance(found, CodeType) else None


def _by_a_thread(error: BaseException) -> bool:
    """What another thread had raised here (`PyThreadState_SetAsyncExc`): a bare one of any class.

    In a frame of ours, and of a class that nothing there raises.
    """
    *_, frame = [None, *_frames(error)]
    if frame is None or not _ours(frame):
        return False
    kind = type(error)
    if kind not in _MEANT and kind.__module__.partition(".")[0] in _OWN:
        return False
    try:
        return kind().args == error.args
    except Exception:  # it takes arguments, or raises: Python would not have got it either
        return False


def _ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("stageprof_runtime.")


def _frames(error: BaseException) -> Iterator[FrameType]:
    """From the one that caught it to the one that it was raised in."""
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame
        at = at.tb_next
