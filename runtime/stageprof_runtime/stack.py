"""What a thread that runs a task is doing, told from one look at its stack.

The looking thread holds the GIL while it looks, so the other has stopped: either at one of the few
instructions at which CPython gives the GIL up (a call, a jump backward, the beginning of a
function), or within C code that had given it up. From the innermost frame one of these follows:

    python      it stopped at a jump backward or at the beginning of a function, in code of the
                user's or of the standard library: it runs bytecode
    call        it stopped at a call there, and whoever held the GIL was in no hurry to give it:
                it runs bytecode, or C code that holds the GIL, or C code that does not; a look
                alone cannot tell
    small calls it stopped as for `python`, but in a library's Python code, called from a loop of
                the user's: the loop's calls do little each (a call there counts as `call`)
    library     it is in a library, in C code without the GIL, or it waits

and from the frames around it these, which are found first:

    iterrows, itertuples, apply(axis=1), element access, Series.apply, Series.map, rolling.apply,
    np.vectorize, np.vectorize(signature), np.apply_along_axis
                a loop over the rows of a frame, or the elements or windows of a column, or the
                vectors of an array
    objects     numpy or pandas works on an array of Python objects; before Python 3.13, where the
                locals of a running function cannot be read safely, only what its functions' names
                tell of it

Without a GIL the other may have gone on since, from a call too (see `unlocked`): then it counts as
`call` wherever it is.

C code that holds the GIL and is not called but reached by an operator (a product of huge integers,
say) counts as `python`: the thread stops at the next jump.
"""

from __future__ import annotations

import sys
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.arrays import is_integer, of_objects
from stageprof_runtime.instruction import Instruction
from stageprof_runtime.looping import loops_of
from stageprof_runtime.origin import BEGIN, NUMERIC, OBJECTS, STANDARD, USER, origin_of
from stageprof_runtime.unlocked import unlocked

PYTHON, CALL, LIBRARY, SMALL = "python", "call", "library", "small calls"
#: Kinds of loops over rows or elements.
ROW_LOOPS: Final = frozenset(
    {
        "iterrows", "itertuples", "apply(axis=1)", "element access", "Series.apply", "Series.map",
        "rolling.apply", "np.vectorize", "np.vectorize(signature)", "np.apply_along_axis",
    }
)  # fmt: skip

#: Frames looked at, from the innermost outward: deeper recursion tells nothing new.
DEPTH: Final = 120
#: Frames of numpy and pandas that are asked for arrays of objects, from the innermost outward.
NEAR: Final = 6

_WRITING: Final = "_setitem_with_indexer"
#: Those of them that take a column if their `axis` is 1.
_BY_AXIS: Final = frozenset({"_ixs", "xs", "_get_label"})
#: Functions of pandas that ask those for columns only.
_COLUMNWISE: Final = frozenset({"_get_item", "_get_item_cache", "items"})


class Seen(NamedTuple):
    """Where in the user's code ("file:line function", "" if unknown), and what kind of work."""

    label: str
    how: str
    #: the name of the outermost function of the user's: what the task calls; "" if there is none
    entry: str = ""


def judge(frame: FrameType | None, *, waited: bool, at: int | None = None) -> Seen:
    """What a stack says.

    Args:
        frame: the innermost frame.
        waited: whether the looking thread had to wait for the GIL as for bytecode.
        at: the offset at which the thread stood; where the frame stands now, if not given.
    """
    frames = _frames(frame)
    if not frames:
        return Seen("", LIBRARY)
    mine = [f for f in frames if origin_of(f.f_code).whose == USER]
    label, entry = (
        (_label(mine[0], mine[0].f_lineno), mine[-1].f_code.co_name) if mine else ("", "")
    )
    found = _row_loop(frames)
    if found is not None:
        return found._replace(entry=entry)
    how = OBJECTS if _on_objects(frames) else _innermost(frames, mine, at, waited=waited)
    return Seen(label, how, entry)


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of the task's function, innermost first."""
    frames: list[FrameType] = []
    while frame is not None and len(frames) < DEPTH:
        if origin_of(frame.f_code).whose == BEGIN:
            break
        frames.append(frame)
        frame = frame.f_back
    return frames


def _label(frame: FrameType, line: int) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{line} {code.co_name}"


# -- loops over rows --------------------------------------------------------------------------


def _row_loop(frames: list[FrameType]) -> Seen | None:
    """The innermost loop over rows or elements on the stack, with the line to change."""
    called: FrameType | None = None
    single = False
    for i, frame in enumerate(frames):
        code = origin_of(frame.f_code)
        if code.whose == USER:
            found = _own_loop(frames, i, single=single)
            if found is not None:
                return found
            called = frame
            single = False
        elif code.loop == "element access":
            single = single or _one_row(frame)
        elif code.loop not in ("", OBJECTS) and called is not None:
            how = _applied(frames[i:], code.loop)
            if how:
                return Seen(_label(called, called.f_code.co_firstlineno), how)
    return None


def _own_loop(frames: list[FrameType], i: int, *, single: bool) -> Seen | None:
    """A loop in the user's own function: over rows, or one that takes single elements."""
    frame = frames[i]
    loop = loops_of(frame.f_code).at(frame.f_lasti)
    if loop is not None and (loop.rows or single):
        return Seen(_label(frame, loop.line), loop.rows or "element access")
    outer = frames[i + 1] if i + 1 < len(frames) else None
    while outer is not None and origin_of(outer.f_code).whose != USER:
        outer = outer.f_back
    inner = None if outer is None else loops_of(outer.f_code).inner.get(frame.f_code)
    return None if inner is None or outer is None else Seen(_label(outer, inner[0]), inner[1])


def _one_row(frame: FrameType) -> bool:
    """Whether a frame of pandas takes or sets one row or element; it may be a column."""
    name = frame.f_code.co_name
    if name in _BY_AXIS:
        axis = _locals(frame, ("axis",)).get("axis", 1 if _for_a_column(frame) else 0)
        return type(axis) is int and axis == 0
    if name != _WRITING:
        return True
    indexer = _locals(frame, ("indexer",)).get("indexer")
    parts = indexer if type(indexer) is tuple else (indexer,)
    return any(type(part) is int or is_integer(part) for part in parts[:1])


def _for_a_column(frame: FrameType) -> bool:
    """Whether a caller is known to want a column, where the axis itself cannot be read."""
    caller = frame.f_back
    return caller is not None and caller.f_code.co_name in _COLUMNWISE


def _applied(frames: list[FrameType], loop: str) -> str:
    """The loop that a frame of pandas makes by calling the user's function; "" if it makes none."""
    if loop == "apply":
        return "apply(axis=1)" if _by_rows(frames) else ""
    return loop


def _by_rows(frames: list[FrameType]) -> bool:
    """Whether `DataFrame.apply` goes over rows, told from the call in the user's own function.

    Dask's own `apply` does nothing else.
    """
    caller = next((f for f in frames if origin_of(f.f_code).whose == USER), None)
    return caller is None or loops_of(caller.f_code).by_rows(caller.f_lasti)


def _locals(frame: FrameType, names: tuple[str, ...]) -> dict[str, Any]:
    """Locals of a function of pandas or numpy; none before Python 3.13.

    There `f_locals` is a view. Earlier it is a dict that CPython writes into a frame which another
    thread is running: it keeps the user's data alive, and workers were seen to crash.
    """
    if sys.version_info < (3, 13) or not frame.f_code.co_flags & CO_OPTIMIZED:
        return {}
    values = frame.f_locals
    return {name: values[name] for name in names if name in values}


# -- arrays of objects ------------------------------------------------------------------------


def _on_objects(frames: list[FrameType]) -> bool:
    """Whether numpy or pandas are at work on an array of Python objects."""
    for frame in frames[:NEAR]:
        code = origin_of(frame.f_code)
        if code.whose != NUMERIC:
            return False
        if code.loop == OBJECTS:
            return True
        if _has_objects(frame):
            return True
    return False


def _has_objects(frame: FrameType) -> bool:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return bool(names) and any(map(of_objects, _locals(frame, names).values()))


# -- bytecode ---------------------------------------------------------------------------------


def _innermost(
    frames: list[FrameType], mine: list[FrameType], at: int | None, *, waited: bool
) -> str:
    """From the instruction at which the innermost frame stopped, what it does."""
    own = origin_of(frames[0].f_code).whose in (USER, STANDARD)
    if not (own or any(loops_of(f.f_code).at(f.f_lasti) for f in mine)):
        return LIBRARY
    stood = Instruction(frames[0], at)
    if stood.between:
        return PYTHON if own else SMALL
    return CALL if waited and (stood.call or unlocked()) else LIBRARY


__all__ = ["CALL", "LIBRARY", "OBJECTS", "PYTHON", "ROW_LOOPS", "SMALL", "Seen", "judge"]
