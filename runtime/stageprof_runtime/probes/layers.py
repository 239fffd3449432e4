"""Where layers and expressions come from: the user's line at which each name was made.

Names are kept in `made`. Expressions that an optimizer makes inherit the line of the expression
that it rewrites.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from stageprof_runtime import process
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.guard import SELDOM, Watch, caught
from stageprof_runtime.lines import DASK, kind, user_line
from stageprof_runtime.made import Line, Lines, forget, known, noting
from stageprof_runtime.patch import Emit, Undo, observe, together

#: Keys looked at, from either end of a layer, for names beside the layer's own; a layer of one
#: key (each `delayed` call makes one) is named after it.
LOOK, LOOK_FROM = 1000, 2

#: Modules that make several layers at once, of graphs that they were given and new ones.
_AT_ONCE = frozenset({"dask.array.core", "dask.array.linalg", "xarray.core.parallel"})
#: What such layers have in common, and no other.
_TOKEN = re.compile("[0-9a-f]{32}")

#: Methods by which an expression takes part in being rewritten; a user's own class has them too.
_REWRITES = frozenset(
    {
        "_simplify_down", "_simplify_up", "_lower", "_tune_down", "_tune_up", "_combine_similar",
        "_blockwise_subset", "_cull_down", "_cull_up", "_layer", "_task",
    }
)  # fmt: skip
#: In the names of expressions that only hold graphs, or expressions side by side.
_WRAPPERS = ("hlgexpr", "finalizecompute", "exprsequence")
#: From here on reading a frame's locals leaves nothing behind in the frame.
_WRITES_THROUGH = sys.version_info >= (3, 13)
#: Frames looked through for the expression that is being rewritten.
_NEAR = 64


def install(emit: Emit) -> Undo:
    """Note the user's line of every layer and expression made from now on."""
    with noting(emit) as lines:
        process.again[install] = lines.tell
        return together(
            [
                forget,
                observe(*place("graph.new"), functools.partial(_graph, lines)),
                observe(*place("graph.init"), functools.partial(at_once, lines.made)),
                observe(*place("expr.new"), functools.partial(_expr, lines)),
            ]
        )


def _graph(lines: Lines, raw: Any, watch: Watch) -> Any:
    """`HighLevelGraph.from_collections`, which each `delayed` call makes its layer with."""
    from_collections = raw.__func__

    @functools.wraps(from_collections)
    def noted(cls: type, name: str, *args: Any, **kwargs: Any) -> Any:
        if not inside.optimizing and not watch.disabled:
            watch.calls = calls = watch.calls + 1
            entered = 0 if calls % SELDOM else now_ns()
            try:
                layer = args[0] if args else None
                single = type(layer) is dict and len(layer) < LOOK_FROM and type(name) is str
                if not single or not lines.again(name):
                    _made(lines, name, layer, sys._getframe(1))
                if entered:
                    watch.took(now_ns() - entered, SELDOM)
            except BaseException as error:
                caught(error, watch)
        return from_collections(cls, name, *args, **kwargs)

    return classmethod(noted)


def at_once(
    note: Callable[[str, Line], None], init: Callable[..., None], watch: Watch
) -> Callable[..., None]:
    """`HighLevelGraph` itself, where several layers are made at once: `from_zarr`, `linalg.qr`."""

    @functools.wraps(init)
    def noted(self: Any, layers: Any, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__") in _AT_ONCE and not watch.disabled:
            watch.calls += 1
            try:
                if not inside.optimizing:
                    line = user_line(frame)
                    for name in _made_at_once(layers):
                        note(name, line)
            except BaseException as error:
                caught(error, watch)
        init(self, layers, *args, **kwargs)

    return noted


def _made_at_once(layers: object) -> Iterator[str]:
    """The last layers, as far as they have a token in common, are new; others were taken over."""
    token = ""
    for name in itertools.islice(reversed(layers) if type(layers) is dict else (), LOOK):
        found = _TOKEN.search(name) if type(name) is str else None
        if found is None or found[0] != (token := token or found[0]):
            return
        yield name


def _made(lines: Lines, name: object, layer: object, frame: FrameType) -> None:
    """A layer was made, and with it names that are in its keys only; some are named by a number."""
    line = user_line(frame)
    if type(layer) is not dict:
        lines.made(name, line)
        return
    if len(layer) < LOOK_FROM and type(name) is str:
        lines.made_from(name, frame, line)
    else:
        lines.made(name, line)
    if len(layer) >= LOOK_FROM:
        for other in _other_names(name, layer):
            lines.made(other, line)
    if type(name) in (str, int) and str(name).isdigit():
        for other in _unnamed(layer):
            if not lines.of(other)[0]:
                lines.made(other, line)


def _other_names(name: object, layer: dict[Any, Any]) -> set[str]:
    """Names in a layer's keys that are not the layer's own: a reduction holds its parts too."""
    first = itertools.islice(layer, LOOK)
    last = itertools.islice(reversed(layer), LOOK)
    token = str(name).rpartition("-")[2]
    keys = [_named(key, token) for key in itertools.chain(first, last)]
    return {key for key in keys if type(key) is str and key != name}


def _named(key: object, token: str) -> object:
    """That of a piece, or a text with the layer's token, as the barrier of a bag's `groupby` is."""
    if type(key) is tuple and key:
        return key[0]
    return key if type(key) is str and key.rpartition("-")[2] == token else None


def _unnamed(layer: dict[Any, Any]) -> set[str]:
    """Names in a collection's own plain graph, which Dask wraps as a layer named by a number."""
    keys = [key[0] if type(key) is tuple and key else key for key in itertools.islice(layer, LOOK)]
    return {key for key in keys if type(key) is str}


def _expr(lines: Lines, raw: Any, watch: Watch) -> Any:
    new: Callable[..., Any] = raw.__func__ if isinstance(raw, staticmethod) else raw

    @functools.wraps(new)
    def made(cls: type, *args: Any, **kwargs: Any) -> Any:
        expr = new(cls, *args, **kwargs)
        if watch.disabled:
            return expr
        watch.calls = calls = watch.calls + 1
        entered = 0 if calls % SELDOM else now_ns()
        try:
            name = expr._name
            if not lines.known(name):
                frame = sys._getframe(1)
                line = _origin(lines, name, frame) if inside.optimizing else user_line(frame)
                lines.made(name, line)
            if entered:
                watch.took(now_ns() - entered, SELDOM)
        except BaseException as error:
            caught(error, watch)
        return expr

    return staticmethod(made)


def _origin(lines: Lines, name: str, frame: FrameType | None) -> Line:
    """The line of the expression whose rewriting is making a new one: the nearest one known.

    What it is made from is the nearest one, be its line known or not: it may have been there
    before lines were noted.
    """
    nearest, line = "", ("", 0)
    for other in _rewriting(frame, own=True):
        nearest, line = nearest or other, lines.of(other)
        if line[0]:
            break
    lines.derived(name, nearest)
    return line


def _rewriting(frame: FrameType | None, *, own: bool) -> Iterator[str]:
    """The names of the expressions that are being rewritten, the innermost first.

    `own`: by the calling thread.
    """
    for _ in range(_NEAR):
        if frame is None:
            return
        if name := _rewritten(frame, own=own):
            yield name
        frame = frame.f_back


def line_of_rewriting(frame: FrameType | None) -> Line:
    """The same for any thread's stack; ("", 0) where no lines are noted.

    A graph that is only wrapped as an expression is made of many lines' layers: it has none.
    """
    lines = known()
    if lines is None:
        return "", 0
    for name in _rewriting(frame, own=False):
        line = lines.of(name)
        if line[0]:
            return ("", 0) if any(wrapper in name for wrapper in _WRAPPERS) else line
    return "", 0


def _rewritten(frame: FrameType, *, own: bool) -> str:
    """The name of the expression that a frame is rewriting; "" if it is none that does.

    Reading a frame's locals leaves, before Python 3.13, a copy of them in the frame, which would
    keep them alive; the copy is emptied again. Frames that may use it themselves (those that call
    `locals`, or are being traced) are passed over. That of another thread is not emptied: CPython
    may be calling a profile function there, and takes the thread's variables out of the copy after.
    """
    code = frame.f_code
    if code.co_varnames[:1] not in (("self",), ("expr",)) or not code.co_argcount:
        return ""
    if kind(code.co_filename) != DASK and code.co_name not in _REWRITES:
        return ""
    if frame.f_trace is not None or "locals" in code.co_names:
        return ""
    copy = frame.f_locals
    try:
        return _name_of(copy.get(code.co_varnames[0]))
    finally:
        if own and not _WRITES_THROUGH:
            copy.clear()


def _name_of(expr: object) -> str:
    """The name of an expression that has one already; asks nothing of the object itself."""
    try:
        name = object.__getattribute__(expr, "__dict__").get("_name", "")
    except AttributeError:
        return ""
    return name if type(name) is str else ""
