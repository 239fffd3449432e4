"""What of a message's bytes is whose: the names of the tasks and data that are in it.

The probe of messages knows which hop a message makes, the probe of what is inside them sees one
task or value at a time. They meet here, by what the thread is dumping or loading. A dump's hop is
known before, so that what is inside is told at once; a load's is known only when it is over.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dask.utils import key_split

from stageprof_runtime.patch import Emit
from stageprof_runtime.ring import SHORT_NS
from stageprof_runtime.stage import STEP

#: Characters of a name that are kept; the longest names that Dask makes itself are shorter.
LONGEST = 300
#: Characters of the tokens that end Dask's keys: 32 hexadecimal digits, or a UUID.
_MD5, _UUID = 33, 37

_DECOMPRESS = STEP["decompress"]


class Part(NamedTuple):
    """One task or value of a message: when it was loaded, its bytes, when it was decompressed."""

    start: int
    stop: int
    nbytes: int
    before: Sequence[tuple[int, int]]


#: The key of a short task or value of a message, ns and bytes.
Short = tuple[Any, int, int]


def tell(emit: Emit, role: str, step: int, shorts: Sequence[Short]) -> None:
    """Sum what of a message was short by layer; all at once, for most are of one layer."""
    totals: dict[str, list[int]] = {}
    for key, ns, nbytes in shorts:
        name = short_name(key)
        total = totals.get(name)
        if total is None:
            totals[name] = [1, ns, nbytes]
        else:
            total[0] += 1
            total[1] += ns
            total[2] += nbytes
    for name, (count, ns, nbytes) in totals.items():
        emit.share(role, step, name[:LONGEST], count, ns, nbytes)


class Loading:
    """What the message carries that a thread is loading."""

    __slots__ = ("before", "shorts", "tasks", "values")

    def __init__(self) -> None:
        #: tasks that were short and held nothing compressed
        self.shorts: list[Short] = []
        #: when what comes next was decompressed
        self.before: list[tuple[int, int]] = []
        #: other tasks with their keys; values in their order, whose keys the message has
        self.tasks: list[tuple[Any, Part]] = []
        self.values: list[Part] = []

    def task(self, key: Any, start: int, stop: int, nbytes: int) -> None:
        """A task was loaded just now that is not short, or something was decompressed before it."""
        before, self.before = self.before, []
        self.tasks.append((key, Part(start, stop, nbytes, before)))

    def emit(self, emit: Emit, role: str, step: int, msg: Any) -> None:
        """Hand on what the message carried, now that it is loaded and its hop is known."""
        data = msg.get("data") if type(msg) is dict else None
        if type(data) is dict and len(data) == len(self.values):
            self.tasks += zip(data, self.values, strict=True)
        tell(emit, role, step, self.shorts)
        for key, part in self.tasks:
            share(emit, role, step, key, part.start, part.stop, part.nbytes)
            for start, stop in part.before:
                share(emit, role, _DECOMPRESS, key, start, stop)


class Dumping:
    """The message that a thread is dumping, and its hop."""

    __slots__ = ("_keys", "_msg", "last", "role", "shorts", "step")

    def __init__(self, msg: Any, role: str, step: int) -> None:
        self._msg = msg
        self.role = role
        self.step = step
        #: what of it was short
        self.shorts: list[Short] = []
        #: the key of what was dumped last
        self.last: Any = None
        self._keys: dict[int, Any] | None = None

    def keys(self) -> dict[int, Any]:
        """Identity of each value's wrapper -> its key."""
        if self._keys is None:
            data = self._msg.get("data") if type(self._msg) is dict else None
            known = data.items() if type(data) is dict else ()
            self._keys = {id(value): key for key, value in known}
        return self._keys


class _Here(threading.local):
    dump: Dumping | None = None
    #: True until the message is known to carry something
    load: Loading | bool = False


#: What is being dumped and loaded on this thread.
here: Final = _Here()


def loading() -> Loading | None:
    """What the message carries that this thread is loading; None if it loads none."""
    if here.load is True:
        here.load = Loading()
    return here.load or None


def share(emit: Emit, role: str, step: int, key: Any, start: int, stop: int, n: int = 0) -> None:
    """Emit what of a step was for a key; `n` bytes.

    What is long goes by the whole key, so that its line can be told; what is short is summed by
    layer, or by the prefix where each task is a layer of its own.
    """
    ns = stop - start
    if ns >= SHORT_NS:
        emit.share(role, step, long_name(key)[:LONGEST], 1, ns, n, stop)
    else:
        emit.share(role, step, short_name(key)[:LONGEST], 1, ns, n)


def long_name(key: Any) -> str:
    """The layer in a key: of a tuple its first element, of a text itself; else ""."""
    if type(key) is tuple and key:
        key = key[0]
    return key if type(key) is str else ""


def short_name(key: Any) -> str:
    """The layer of a tuple's key; of a text what is left of it without its token."""
    if type(key) is tuple and key and type(key[0]) is str:  # most often, and in one call
        return key[0]
    if type(key) is not str:
        return ""
    if key[-_MD5:-32] == "-":
        return key[:-_MD5]
    if key[-_UUID:-36] == "-":
        return key[:-_UUID]
    return str(key_split(key[:LONGEST]))
