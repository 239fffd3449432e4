"""The variables that are on the stack: looked at, and left as they were.

Before Python 3.13, reading `f_locals` of a function's frame leaves a dict in the frame that keeps
what the user deletes afterwards alive. It is emptied again, unless somebody else has it; frames
of functions that call `locals` themselves are not read, for their dict would change.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Final

from stageprof_runtime.lines import USER, kind

#: Frames looked at, from the innermost outwards.
MOST: Final = 200
#: Of them, frames of what the user called, and frames of the user's.
MOST_CALLED, MOST_USER = 12, 8
#: References to a dict of locals that only its frame and we have: the frame, our variable, the
#: argument of getrefcount.
_OURS: Final = 3
#: Functions that name one of these may have their own frame's dict in hand.
_READERS: Final = frozenset({"locals", "f_locals", "eval", "exec"})
_SNAPSHOTS: Final = sys.version_info < (3, 13)


@functools.lru_cache(1000)
def reads_itself(code: CodeType) -> bool:
    """Whether a function may have its own frame's dict of variables in hand.

    pytest writes `@py_builtins.locals()` into every assert; that is an attribute, and is not kept.
    """
    if _READERS.isdisjoint(code.co_names):
        return False
    for this in dis.get_instructions(code):
        plain = this.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
        if this.argval in _READERS and (plain or this.argval == "f_locals"):
            return True
    return False


class Scope:
    """One frame's variables."""

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
        readable = not self.function or not reads_itself(frame.f_code)
        self.variables: dict[str, Any] = {}
        if readable:
            self.variables = dict(frame.f_locals)
            if self.function and _SNAPSHOTS:
                _empty(frame)


def _empty(frame: FrameType) -> None:
    snapshot = frame.f_locals
    if sys.getrefcount(snapshot) <= _OURS:
        snapshot.clear()


class Stack:
    """The scopes above a frame, read once and let go of with `clear`."""

    def __init__(self, frame: FrameType | None) -> None:
        self._called: list[FrameType] = []
        self._user: list[FrameType] = []
        self._scopes: dict[int, Scope] = {}
        for here in _outwards(frame):
            whose = kind(here.f_code.co_filename)
            if whose == USER and len(self._user) < MOST_USER:
                self._user.append(here)
            elif whose != USER and not self._user:
                self._called.append(here)

    def user(self) -> list[Scope]:
        """The user's scopes, from the innermost outwards."""
        return [self._scope(frame) for frame in self._user]

    def called(self) -> list[Scope]:
        """Scopes of what the user's innermost frame called, outermost first.

        Dask's functions, and those of libraries built on it.
        """
        return [self._scope(frame) for frame in reversed(self._called[-MOST_CALLED:])]

    def modules(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and globals of the modules of the user's frames."""
        found = {id(f.f_globals): f.f_globals for f in self._user}
        return [(str(g.get("__name__", "")), g) for g in found.values()]

    def value(self, name: str) -> Any:
        """What a variable of the user's is, in the innermost scope that has it; None if in none."""
        scopes = [scope.variables for scope in self.user()]
        modules = [variables for _, variables in self.modules()]
        return next((known[name] for known in (*scopes, *modules) if name in known), None)

    def line(self) -> tuple[str, int]:
        """Where the user's innermost frame is."""
        if not self._user:
            return "", 0
        return self._user[0].f_code.co_filename, self._user[0].f_lineno

    def _scope(self, frame: FrameType) -> Scope:
        known = self._scopes.get(id(frame))
        if known is None:
            known = self._scopes[id(frame)] = Scope(frame)
        return known

    def clear(self) -> None:
        """Let go of frames and variables."""
        for scope in self._scopes.values():
            scope.variables.clear()
        self._scopes.clear()
        self._called.clear()
        self._user.clear()


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(MOST):
        if frame is None:
            return
        yield frame
        frame = frame.f_back
