"""Where functions that came by value were written: their code says so again.

Functions of a script, and those defined within others, are pickled by value. From 3.1.3 on
cloudpickle leaves out their file, so that tracebacks, stacks and what py-spy sees on a worker name
`<dynamic-code>`. Their globals still say the file: the code is given it as they are made. To pickle
them again leaves it out again.

The cells of a notebook have no file in their globals, and what a script has executed (the methods
of a dataclass, the text of another file) is not of the script's. Such code keeps its file in graphs
that are handed over, and in the tasks that a scheduler makes of them. What names a task by what it
is made of is not touched: keys are what they are anyway.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from stageprof_runtime.compat import cloudpickle, place, reducers
from stageprof_runtime.context import inside
from stageprof_runtime.guard import Watch, caught
from stageprof_runtime.origin import is_written
from stageprof_runtime.patch import Emit, Undo, observe, observe_item
from stageprof_runtime.stage import Stage

#: What cloudpickle calls the file.
DYNAMIC: Final = "<dynamic-code>"
#: Where a thread is while it dumps a graph to hand it over, and its tasks to send them on.
_HANDING_OVER: Final = ("client", Stage.SERIALIZATION)
_SENDING: Final = ("scheduler", Stage.SERIALIZATION)
#: Codes that are kept: a task's function is made anew for each task.
KEPT: Final = 1_000

_known: dict[tuple[CodeType, str], CodeType] = {}


def install(emit: Emit) -> Undo:
    """Say the file in what is made from now on."""
    return observe(*place("pickle.function"), _made)


def _made(make: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(make)  # it is pickled by its name
    def made(code: Any, scope: Any, *args: Any) -> Any:
        try:
            if code.co_filename == DYNAMIC and not watch.disabled and not is_written(code):
                code = _written(code, scope.get("__file__"))
        except BaseException as error:
            caught(error, watch)
        return make(code, scope, *args)

    return made


def _written(code: CodeType, file: object) -> CodeType:
    """The same code, which says its file if that is known."""
    if type(file) is not str or not file:
        return code
    known = _known.get((code, file))
    if known is None:
        if len(_known) >= KEPT:
            _known.clear()
        known = _known[code, file] = written_in(code, file)
    return known


def written_in(code: CodeType, file: str) -> CodeType:
    """A copy of code, and of all code inside it, that names another file."""
    inside = (written_in(c, file) if type(c) is CodeType else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inside))


def install_cells(emit: Emit) -> Undo:
    """Keep the file of cells and of executed texts in what is handed over or sent on from now."""
    return observe_item(reducers(cloudpickle.Pickler), CodeType, _reduced)


def _reduced(reduce: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(reduce)
    def reduced(code: CodeType) -> Any:
        made = reduce(code)
        try:
            at = inside.at
            if not watch.disabled and (at == _SENDING or (at == _HANDING_OVER and _is_apart(code))):
                kind, parts = made
                return kind, tuple(code.co_filename if _left_out(x) else x for x in parts)
        except BaseException as error:
            caught(error, watch)
        return made

    return reduced


def _is_apart(code: CodeType) -> bool:
    """Whether code is of another file than the program's, whatever its globals say."""
    return code.co_filename != getattr(sys.modules.get("__main__"), "__file__", None)


def _left_out(part: object) -> bool:
    return type(part) is str and part == DYNAMIC
