"""Where the interpreter of this process keeps its GIL, found by looking for what is known.

`_PyRuntime` holds the GIL's state: the switch interval, which thread held it last, and whether it
is locked. While this thread runs it holds the GIL, so the word that equals its own thread state,
between the known interval and a 1, is the one. Nothing here depends on a version's layout; it was
seen to find the state in CPython 3.11, 3.12 and 3.13.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import struct
import sys
import threading
from pathlib import Path
from typing import Final, NamedTuple

from stageprof_runtime.unlocked import unlocked

#: Bytes of `_PyRuntime` that are searched, and of a thread state.
RUNTIME, THREAD = 400_000, 400
_WORD: Final = 8


class GilState(NamedTuple):
    """Addresses in this process's memory, and offsets in a thread state, in bytes."""

    #: of the pointer to the state of the thread that held the GIL last; `locked` follows it
    holder: int
    #: of the thread's identifier (`threading.get_ident`) in a thread state
    ident: int


class NoGil(Exception):
    """Why the GIL of this process cannot be looked at."""


class NeverGil(NoGil):
    """This Python has none."""


def find() -> GilState:
    """Where the GIL of this process is.

    Raises:
        NeverGil: this Python has none.
        NoGil: it cannot be found here.
    """
    if unlocked():
        raise NeverGil("this Python runs without a GIL")
    if sys.platform != "linux" or struct.calcsize("P") != _WORD:
        raise NoGil(f"memory of a process is read on 64-bit Linux only, this is {sys.platform}")
    if platform.python_implementation() != "CPython":
        raise NoGil(f"{platform.python_implementation()} is not CPython")
    return _found()


@functools.cache
def _found() -> GilState:
    """It stays there while the process lives."""
    start = _runtime()
    size = min(RUNTIME, _end_of_mapping(start) - start)
    mine, other = _candidates(start, size), _candidates_of_another_thread(start, size)
    both = mine[0] & other[0]
    idents = sorted(mine[1] & other[1])
    if len(both) != 1 or not idents:
        raise NoGil(f"the state of the GIL was not found ({len(both)} candidates)")
    return GilState(start + both.pop(), idents[0])


def _runtime() -> int:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    except ValueError:
        raise NoGil("the interpreter does not show its state") from None


def _candidates(start: int, size: int) -> tuple[set[int], set[int]]:
    """Offsets at which the last holder may be kept, and this thread's identifier."""
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    me, interval = int(get()), round(sys.getswitchinterval() * 1e6)
    # `string_at` keeps the GIL; a read of /proc/self/mem would give it away.
    held = _places(ctypes.string_at(start, size), struct.pack("QQI", interval, me, 1))
    ids = struct.pack("QQ", threading.get_ident(), threading.get_native_id())
    return {at + _WORD for at in held}, _places(ctypes.string_at(me, THREAD), ids)


def _places(memory: bytes, wanted: bytes) -> set[int]:
    """Every offset, on a word, of some bytes in others."""
    found, at = set(), memory.find(wanted)
    while at >= 0:
        if at % _WORD == 0:
            found.add(at)
        at = memory.find(wanted, at + 1)
    return found


def _candidates_of_another_thread(start: int, size: int) -> tuple[set[int], set[int]]:
    found: list[tuple[set[int], set[int]]] = []

    def look() -> None:
        found.append(_candidates(start, size))

    thread = threading.Thread(target=look, name="stageprof-gil")
    thread.start()
    thread.join()
    if not found:
        raise NoGil("the state of the GIL could not be read")
    return found[0]


def _end_of_mapping(address: int) -> int:
    """Where the readable memory that holds an address ends."""
    end = 0
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, rights = line.split()[:2]
        low, high = (int(x, 16) for x in bounds.split("-"))
        if (low <= address < high or low == end) and rights.startswith("r"):
            end = high
        elif end:
            break
    if not end:
        raise NoGil("the interpreter's state is in no mapping")
    return end
