"""Which exceptions tasks raise, and where: their types and lines, never what they say.

A mark "task failed" is put down as the function ends, its label is "<type> TAB <prefix> TAB
<file:line>". How many tasks failed is known from the scheduler, so a few hundred marks will do.
A worker that cannot load a message of its scheduler's ends, and the tasks in it with it: a mark
"not loaded" says why, "<type> TAB <module that was not found> TAB <file:line>".
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.lines import USER, kind
from stageprof_runtime.patch import Emit

#: The names of the marks.
NAME: Final = "task failed"
UNLOADED: Final = "not loaded"
#: The file of a function that cloudpickle sent to a process of a pool.
NAMELESS: Final = "<dynamic-code>"
#: In place of a label, of an exception that was not seen.
UNKNOWN: Final = "unknown"
#: Marks of one process in one recording; more failures are only counted.
MOST: Final = 100
#: Frames of a traceback that are looked at; a recursion that ended in an error has more.
DEEP: Final = 100
#: Characters of the name of a class, and of a prefix.
LONG: Final = 200
# the slots themselves: a class may have put something else in their way
_TRACEBACK: Final[Any] = vars(BaseException)["__traceback__"]
_NAME: Final[Any] = vars(type)["__name__"]
_MODULE: Final[Any] = vars(ImportError)["name"]

#: How many marks this process has put down; a list, for hooks of several threads share it.
_told: Final[list[None]] = []


def begin() -> None:
    """A recording begins: it is told of failures anew."""
    _told.clear()


def failed(emit: Emit, role: str, name: str, key: object, error: Any) -> None:
    """A task's function has ended with an exception, in the process of that role and name."""
    if len(_told) < MOST and isinstance(error, BaseException):
        tell(emit, role, name, now_ns(), label(key, error))


def tell(emit: Emit, role: str, name: str, t: int, said: str) -> None:
    """Put the mark down, unless there are enough."""
    if len(_told) < MOST and said != UNKNOWN:
        _told.append(None)
        emit.row_of(role, name, (MARK, t, NAME, said))


def unloaded(emit: Emit, role: str, error: BaseException) -> None:
    """A message could not be loaded in the process of that role."""
    if len(_told) < MOST and isinstance(error, Exception):
        _told.append(None)
        lacks = part(_MODULE.__get__(error) or "") if isinstance(error, ImportError) else ""
        said = "\t".join((type_name(error), lacks, _raised(error)))
        emit.row(role, (MARK, now_ns(), UNLOADED, said))


def label(key: object, error: BaseException | str) -> str:
    """What the mark says of an exception, or of the name of a type."""
    name, where = (error, "") if isinstance(error, str) else (type_name(error), _raised(error))
    return "\t".join((name, part(key_split(key)), where))


def type_name(error: BaseException) -> str:
    """What the class of an exception is called, whatever it says of itself."""
    return part(_NAME.__get__(type(error)))


def part(text: object) -> str:
    """A type's name or a prefix as a label has it: without what separates its parts."""
    return str(text)[:LONG].replace("\t", " ")


def _raised(error: BaseException) -> str:
    """The innermost of the user's own lines in the traceback, `file:line`; "" if there is none."""
    at: TracebackType | None = _TRACEBACK.__get__(error)
    found = ""
    for _ in range(DEEP):
        if at is None:
            break
        file = at.tb_frame.f_code.co_filename
        if file != NAMELESS and kind(file) == USER:
            found = f"{file}:{at.tb_lineno}"
        at = at.tb_next
    return found
