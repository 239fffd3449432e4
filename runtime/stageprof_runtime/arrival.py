"""What to do as soon as a module is there: nothing is imported that the user did not import.

All of it is done by one function around Python's own import: what stands there is on the stack once
for each module that imports another, and a program may import many in one another.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

from stageprof_runtime.compat import place
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Undo, noted, observe, together

#: What is done to a module of a name that is there; it returns how to take that back.
Then = Callable[[str, ModuleType], Iterable[Undo]]

#: What Python leaves out of a failed import's traceback, and looks past for whom a warning is for.
_IMPORTING: Final = "<frozen importlib._bootstrap>"

_lock: Final = threading.RLock()
#: Who waits for modules in this process.
_waiting: Final[list[_Waiting]] = []
#: How to take the function away again, if it is there.
_there: Final[list[Undo]] = []


class _Waiting:
    """Does something to modules of some names, once to each."""

    def __init__(self, names: Iterable[str], then: Then) -> None:
        self.names = frozenset(names)
        self._then = then
        #: by name and identity; the module is kept, so that no other gets its identity
        self._met: dict[tuple[str, int], list[ModuleType]] = {}
        self._undos: list[Undo] = []
        self._over = False

    def meet(self, name: str) -> None:
        """Do it to the module of a name, if it is there and was not met before."""
        module = sys.modules.get(name)
        if module is None or self._over:
            return
        mine = [module]
        if self._met.setdefault((name, id(module)), mine) is not mine:
            return
        undos = list(self._then(name, module))
        self._undos += undos
        if self._over:  # meanwhile, in another thread
            together(undos)()

    def undo(self) -> None:
        """Take all of it back, and wait for no more."""
        self._over = True
        _leave(self)
        together(self._undos)()


def arrived(names: Iterable[str], then: Then) -> Undo:
    """Do it to those of these modules that are there, and to the others once they are."""
    waiting = _Waiting(names, then)
    undo = noted(waiting.undo)
    _join(waiting)
    for name in waiting.names:
        waiting.meet(name)
    return undo


def as_import(function: Any) -> Any:
    """A Python function that stands around Python's own import, for Python a part of that."""
    function.__code__ = function.__code__.replace(co_filename=_IMPORTING)
    return function


def _join(waiting: _Waiting) -> None:
    with _lock:
        if not _waiting:
            _there.append(observe(*place("python.import"), _make))
        _waiting.append(waiting)


def _leave(waiting: _Waiting) -> None:
    with _lock:
        if waiting in _waiting:
            _waiting.remove(waiting)
            if not _waiting:
                together(_there)()


def _make(find_and_load: Any, watch: Watch) -> Any:
    def _find_and_load(name: str, import_: Any) -> Any:
        module = find_and_load(name, import_)
        for waiting in tuple(_waiting):
            if name in waiting.names and not watch.disabled:
                attempt(watch, waiting.meet, name)
        return module

    return as_import(_find_and_load)


if hasattr(os, "register_at_fork"):  # in a child no other thread has it, which might for ever
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
