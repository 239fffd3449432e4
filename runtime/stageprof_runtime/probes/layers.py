"""Where layers and expressions come from: the user's line at which each name was made.

Most prefixes are made at one line only, so a prefix is stored once with its first line, and only
names that were made elsewhere are stored one by one: 100,000 `delayed` calls in a loop are one
row. Expressions that an optimizer makes inherit the line of the expression it rewrites.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.event import LINE
from stageprof_runtime.lines import user_line
from stageprof_runtime.patch import Emit, Undo, replace, together

#: Names kept apart from their prefix; beyond this the prefix's line stands for them.
MOST = 100_000

#: Keys looked at, from either end of a layer, for names beside the layer's own; a layer of one
#: key (each `delayed` call makes one) is named after it.
LOOK, LOOK_FROM = 1000, 2

Line = tuple[str, int]


class Lines:
    """Which line made which name, and what of it has been emitted."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._prefix: dict[str, Line] = {}
        self._name: dict[str, Line] = {}

    def made(self, name: object, line: Line) -> None:
        """A layer, expression or key of this name was made at this line."""
        if not line[0] or not isinstance(name, str):
            return
        prefix = name.rpartition("-")[0] or name
        known = self._prefix.get(prefix)
        if known is None:
            self._prefix[prefix] = line
            self._emit.row("client", (LINE, prefix, *line, 1))
        elif known != line and len(self._name) < MOST and name not in self._name:
            self._name[name] = line
            self._emit.row("client", (LINE, name, *line, 0))

    def of(self, name: str) -> Line:
        """The line that made a name; ("", 0) if unknown."""
        known = self._name.get(name)
        return known or self._prefix.get(name.rpartition("-")[0] or name, ("", 0))


def install(emit: Emit) -> Undo:
    """Note the user's line of every layer and expression made from now on."""
    lines = Lines(emit)
    return together(
        [
            replace(*place("graph.new"), lambda f: _graph(lines, f)),
            replace(*place("expr.new"), lambda f: _expr(lines, f)),
        ]
    )


def _graph(lines: Lines, raw: Any) -> Any:
    from_collections = raw.__func__

    def noted(cls: type, name: str, *args: Any, **kwargs: Any) -> Any:
        if not inside.optimizing:
            line = user_line(sys._getframe(1))
            lines.made(name, line)
            for other in _other_names(name, args[0] if args else None):
                lines.made(other, line)
        return from_collections(cls, name, *args, **kwargs)

    return classmethod(noted)


def _other_names(name: str, layer: object) -> set[str]:
    """Names in a layer's keys that are not the layer's own: a reduction holds its parts too."""
    if type(layer) is not dict or len(layer) < LOOK_FROM:
        return set()
    first = itertools.islice(layer, LOOK)
    last = itertools.islice(reversed(layer), LOOK)
    keys = [key[0] for key in itertools.chain(first, last) if type(key) is tuple and key]
    return {key for key in keys if type(key) is str and key != name}


def _expr(lines: Lines, raw: Any) -> Any:
    new: Callable[..., Any] = raw.__func__ if isinstance(raw, staticmethod) else raw

    def made(cls: type, *args: Any, **kwargs: Any) -> Any:
        expr = new(cls, *args, **kwargs)
        frame = sys._getframe(1)
        line = _origin(lines, frame) if inside.optimizing else user_line(frame)
        lines.made(expr._name, line)
        return expr

    return staticmethod(made)


def _origin(lines: Lines, frame: FrameType | None) -> Line:
    """The line of the expression whose rewriting is making a new one: the nearest one known."""
    for _ in range(16):
        if frame is None:
            break
        if frame.f_code.co_varnames[:1] in (("self",), ("expr",)):
            rewritten = frame.f_locals.get(frame.f_code.co_varnames[0])
            name = getattr(rewritten, "__dict__", {}).get("_name", "")
            if isinstance(name, str) and name and (line := lines.of(name))[0]:
                return line
        frame = frame.f_back
    return "", 0
