"""Groups of a frame that pandas gives one by one, to a function or to a loop of the user's.

Where pandas does not do all groups at once in compiled code it cuts the frame into pieces, one for
each group. How many there are it has counted by then. Only in tasks, and not of few groups: what
has a hundred takes some ten milliseconds, so that no thread has more than a hundred rows a second.
Seen in pandas 2.3 to 3.1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from types import FrameType, ModuleType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import GROUPED
from stageprof_runtime.guard import Watch, caught
from stageprof_runtime.lines import is_users
from stageprof_runtime.looping import COMPREHENSIONS, lines_of, loops_of
from stageprof_runtime.patch import Emit, Undo, observe, replace
from stageprof_runtime.probes.stacks import running

#: Fewer groups are not told.
FEW: Final = 100

_MODULE: Final = "pandas.core.groupby.ops"
#: The generator of pandas that gives groups to whoever loops over them.
_GIVES: Final = "get_iterator"
#: What pandas puts around it where keys are a list of one, and are given as tuples.
_TUPLED: Final = "<genexpr>"
#: Frames of ours, at most, between what is wrapped and who called it.
_BETWEEN: Final = 4


def install(emit: Emit) -> Undo:
    """Note each frame that is cut into groups, or spans of time, in a task."""
    return arrived([_MODULE], lambda _, module: _wrapped(emit, module))


def _wrapped(emit: Emit, module: ModuleType) -> Iterator[Undo]:
    owner = getattr(module, "BaseGrouper", None)
    if hasattr(owner, "_get_splitter"):
        yield replace(owner, "_get_splitter", lambda f: _noting(emit, f))
    owner = getattr(module, "BinGrouper", None)
    if owner is not None and _GIVES in vars(owner):
        yield observe(owner, _GIVES, lambda f, watch: _giving(emit, f, watch))


def _noting(emit: Emit, split: Callable[..., Any]) -> Callable[..., Any]:
    def noted(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        pieces = split(self, data, *args, **kwargs)
        _note(emit, self, data, sys._getframe(1))
        return pieces

    return noted


def _giving(emit: Emit, give: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """Spans of time are cut by a generator: what is before its first group runs when that does."""

    @functools.wraps(give)
    def get_iterator(self: Any, data: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        try:
            if not watch.disabled:
                _note(emit, self, data, sys._getframe())
        except BaseException as error:
            caught(error, watch)
        yield from give(self, data, *args, **kwargs)

    return get_iterator


def _note(emit: Emit, grouper: Any, data: Any, frame: FrameType) -> None:
    at = running.get(get_ident())
    if at is not None and (groups := grouper.ngroups) >= FEW:
        role, key = at
        row = (key_split(key), *_loop(frame), int(groups), len(data))
        emit.row(role, (GROUPED, now_ns(), *row))


def _loop(frame: FrameType) -> tuple[str, int]:
    """The user's loop that the groups are for, and its last line; ("", 0) if pandas has one."""
    user = _looping(frame)
    if user is None:
        return "", 0
    code = user.f_code
    loop = loops_of(code).begun(user.f_lasti)
    first, last = (0, 0) if loop is None else lines_of(code, loop)
    return (f"{code.co_filename}:{first} {_name(user)}", last) if first else ("", 0)


def _looping(frame: FrameType | None) -> FrameType | None:
    """Whose frame asks for the first group, if it is the user's."""
    for _ in range(_BETWEEN):
        if frame is None or frame.f_code.co_name == _GIVES:
            break
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != _GIVES:
        return None
    asks = frame.f_back
    if asks is not None and asks.f_code.co_name == _TUPLED and not is_users(asks):
        asks = asks.f_back
    return asks if asks is not None and is_users(asks) else None


def _name(frame: FrameType) -> str:
    """The name of a function; of a comprehension's that in which it stands."""
    here: FrameType | None = frame
    while here is not None and here.f_code.co_name in COMPREHENSIONS:
        here = here.f_back
    return (here or frame).f_code.co_name
