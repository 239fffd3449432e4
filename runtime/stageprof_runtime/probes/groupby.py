"""Groups of a frame that pandas gives one by one, to a function or to a loop of the user's.

Where pandas does not do all groups at once in compiled code it cuts the frame into pieces, one for
each group. How many there are it has counted by then. Only in tasks, and not of few groups: what
has a hundred takes some ten milliseconds, so that no thread has more than a hundred rows a second.
Seen in pandas 2.3 to 3.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from types import FrameType, ModuleType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import GROUPED
from stageprof_runtime.lines import USER, kind
from stageprof_runtime.looping import COMPREHENSIONS, lines_of, loops_of
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.probes.stacks import running

#: Fewer groups are not told.
FEW: Final = 100

_MODULE: Final = "pandas.core.groupby.ops"
#: The generator of pandas that gives groups to whoever loops over them.
_GIVES: Final = "get_iterator"
#: Frames of ours, at most, between what is wrapped and who called it.
_BETWEEN: Final = 4


def install(emit: Emit) -> Undo:
    """Note each frame that is cut into groups in a task."""
    return arrived([_MODULE], lambda _, module: _wrapped(emit, module))


def _wrapped(emit: Emit, module: ModuleType) -> Iterator[Undo]:
    owner = getattr(module, "BaseGrouper", None)
    if hasattr(owner, "_get_splitter"):
        yield replace(owner, "_get_splitter", lambda f: _noting(emit, f))


def _noting(emit: Emit, split: Callable[..., Any]) -> Callable[..., Any]:
    def noted(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        pieces = split(self, data, *args, **kwargs)
        at = running.get(get_ident())
        if at is not None and (groups := self.ngroups) >= FEW:
            role, key = at
            row = (key_split(key), *_loop(sys._getframe(1)), int(groups), len(data))
            emit.row(role, (GROUPED, now_ns(), *row))
        return pieces

    return noted


def _loop(frame: FrameType | None) -> tuple[str, int]:
    """The user's loop that the groups are for, and its last line; ("", 0) if pandas has one."""
    for _ in range(_BETWEEN):
        if frame is None or frame.f_code.co_name == _GIVES:
            break
        frame = frame.f_back
    user = frame.f_back if frame is not None and frame.f_code.co_name == _GIVES else None
    if user is None or kind(user.f_code.co_filename) != USER:
        return "", 0
    code = user.f_code
    loop = loops_of(code).begun(user.f_lasti)
    first, last = (0, 0) if loop is None else lines_of(code, loop)
    return (f"{code.co_filename}:{first} {_name(user)}", last) if first else ("", 0)


def _name(frame: FrameType) -> str:
    """The name of a function; of a comprehension's that in which it stands."""
    here: FrameType | None = frame
    while here is not None and here.f_code.co_name in COMPREHENSIONS:
        here = here.f_back
    return (here or frame).f_code.co_name
