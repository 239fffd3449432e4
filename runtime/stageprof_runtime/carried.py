"""What of a message's bytes is whose: the names of the tasks and data that are in it.

The probe of messages knows which hop a message makes, the probe of what is inside them sees one
task or value at a time. They meet here: one record per message, kept by the thread that dumps or
loads it.
"""

from __future__ import annotations

import threading
from typing import Any, Self

from dask.utils import key_split

from stageprof_runtime.patch import Emit
from stageprof_runtime.ring import SHORT_NS
from stageprof_runtime.stage import STEP

#: Characters of a name that are kept; the longest names that Dask makes itself are shorter.
LONGEST = 300
#: Characters of the tokens that end Dask's keys: 32 hexadecimal digits, or a UUID.
_MD5, _UUID = 33, 37

_DECOMPRESS = STEP["decompress"]


class Carried:
    """Times and bytes of what one message carries."""

    __slots__ = ("before", "keys", "last", "long", "sums", "values")

    def __init__(self) -> None:
        #: of a dump: id of each value's wrapper -> its key
        self.keys: dict[int, Any] = {}
        #: of a dump: the key of what was dumped last
        self.last: Any = None
        #: of a load: when what comes next was decompressed
        self.before: list[tuple[int, int]] = []
        #: of a load: values in their order (start, stop, bytes, when decompressed)
        self.values: list[tuple[int, int, int, list[tuple[int, int]]]] = []
        #: short ones by (name, step or 0 for the message's own): count, ns, bytes
        self.sums: dict[tuple[str, int], list[int]] = {}
        #: long ones: name, step or 0, start, stop, bytes
        self.long: list[tuple[str, int, int, int, int]] = []

    def add(self, key: Any, start: int, stop: int, nbytes: int, step: int = 0) -> None:
        """One task or value took from `start` to `stop`.

        What is long goes by the whole key, so that its line can be told; what is short is summed
        by layer, or by the prefix where each task is a layer of its own.
        """
        if stop - start >= SHORT_NS:
            self.long.append((long_name(key), step, start, stop, nbytes))
            return
        name = key[0] if type(key) is tuple and key and type(key[0]) is str else short_name(key)
        total = self.sums.get((name, step))
        if total is None:
            self.sums[name, step] = [1, stop - start, nbytes]
            return
        total[0] += 1
        total[1] += stop - start
        total[2] += nbytes

    def loaded(self, key: Any, start: int, stop: int, nbytes: int) -> None:
        """The same of a load, with what was decompressed before it."""
        self.add(key, start, stop, nbytes)
        for span in self.before:
            self.add(key, *span, 0, _DECOMPRESS)
        self.before.clear()

    def emit(self, emit: Emit, role: str, step: int) -> None:
        """Hand all of it on."""
        for name, own, start, stop, nbytes in self.long:
            emit.share(role, own or step, name[:LONGEST], 1, stop - start, nbytes, stop)
        for (name, own), total in self.sums.items():
            emit.share(role, own or step, name[:LONGEST], *total)


class _Here(threading.local):
    dump: Carried | None = None
    load: Carried | None = None


#: What is being dumped and loaded on this thread.
here = _Here()


class dumping:  # noqa: N801 (used like a function, as `context.within` is)
    """A message is being dumped on this thread."""

    __slots__ = ("_before", "_carried", "_emit", "_role", "_step")

    def __init__(self, emit: Emit, role: str, step: int, msg: Any) -> None:
        self._emit, self._role, self._step = emit, role, step
        self._carried = Carried()
        data = msg.get("data") if type(msg) is dict else None
        if type(data) is dict:
            self._carried.keys = {id(value): key for key, value in data.items()}

    def __enter__(self) -> None:
        self._before, here.dump = here.dump, self._carried

    def __exit__(self, *error: object) -> None:
        here.dump = self._before
        self._carried.emit(self._emit, self._role, self._step)


class loading:  # noqa: N801
    """A message is being loaded on this thread; `emit` tells what was in it."""

    __slots__ = ("_before", "_carried")

    def __enter__(self) -> Self:
        self._carried = Carried()
        self._before, here.load = here.load, self._carried
        return self

    def __exit__(self, *error: object) -> None:
        here.load = self._before

    def emit(self, emit: Emit, role: str, step: int, msg: Any) -> None:
        """Hand on what was loaded, now that the hop is known."""
        carried = self._carried
        data = msg.get("data") if type(msg) is dict else None
        if type(data) is dict and len(data) == len(carried.values):
            for key, (start, stop, nbytes, before) in zip(data, carried.values, strict=True):
                carried.before = before  # values are loaded in their order
                carried.loaded(key, start, stop, nbytes)
        carried.emit(emit, role, step)


def share(emit: Emit, role: str, step: int, key: Any, start: int, stop: int, n: int = 0) -> None:
    """Emit what of a step was for a key, outside of any message; `n` bytes."""
    carried = Carried()
    carried.add(key, start, stop, n)
    carried.emit(emit, role, step)


def long_name(key: Any) -> str:
    """The layer in a key: of a tuple its first element, of a text itself; else ""."""
    if type(key) is tuple and key:
        key = key[0]
    return key if type(key) is str else ""


def short_name(key: Any) -> str:
    """The layer of a tuple's key; of a text what is left of it without its token."""
    if type(key) is tuple or type(key) is not str:
        return long_name(key)
    if key[-_MD5:-32] == "-":
        return key[:-_MD5]
    if key[-_UUID:-36] == "-":
        return key[:-_UUID]
    return str(key_split(key[:LONGEST]))
