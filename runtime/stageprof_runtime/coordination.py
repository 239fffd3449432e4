"""Waiting for others by Dask's coordination primitives: locks, semaphores, events, queues.

A call of theirs goes through a client as any other does, but what it waits for is neither a key nor
a message: somebody else has to let go of a lock, to set an event, to put something into a queue.
"""

from __future__ import annotations

from types import FrameType
from typing import Final

#: Module -> methods that wait until somebody else does something.
_WAITING: Final = {
    "distributed.lock": frozenset({"acquire"}),
    "distributed.multi_lock": frozenset({"acquire"}),
    "distributed.semaphore": frozenset({"acquire"}),
    "distributed.event": frozenset({"wait"}),
    "distributed.queues": frozenset({"get", "put"}),
    "distributed.variable": frozenset({"get"}),
}
#: What is called in them is so many frames away from the method, at most.
_REACH: Final = 4
#: Characters of a name that are kept.
_LONGEST: Final = 100
#: What such a call is called begins so.
WAITS: Final = "wait for "


def waits_for(frame: FrameType | None) -> str:
    """What a call waits for that these frames lead to, as "Lock name"; "" if for none of these."""
    for _ in range(_REACH):
        if frame is None:
            return ""
        code, module = frame.f_code, str(frame.f_globals.get("__name__"))
        if code.co_name in _WAITING.get(module, ()):
            return _called(frame.f_locals.get("self"))
        frame = frame.f_back
    return ""


def _called(owner: object) -> str:
    name = getattr(owner, "name", "")  # several locks at once have several
    return f"{type(owner).__name__} {name if type(name) is str else ''}"[:_LONGEST].rstrip()
