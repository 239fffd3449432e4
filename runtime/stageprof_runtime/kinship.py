"""Values that Dask made from the user's: copies, views, chunks, parts and slices.

A view of numpy's knows its parent, and a slice of Arrow's shares its buffers. A copy is told by
its shape, its type and a sample of its elements; a part of a list by the elements themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stageprof_runtime.assignment import place_in_module
from stageprof_runtime.kinds import CUSTOM, is_a, kind_of, package_of
from stageprof_runtime.naming import Origin, find, origin_of
from stageprof_runtime.scopes import Stack

#: Elements of an array that are compared; that many random ones do not agree by chance.
SAMPLED: Final = 64
#: Lists up to this length are searched for a part of them at every place.
LONGEST: Final = 5000
#: Views of views that are followed.
_VIEWS: Final = 8


def find_kin(value: Any, stack: Stack) -> Origin | None:
    """The variable from which Dask made this object: copied it, or cut it out of it."""
    base = parent(value)
    if base is not value and (found := find(base, stack)):
        return found
    return _given(value, stack) or _own(lambda own: is_copy(base, own), stack)


def find_whole(value: Any, stack: Stack) -> Origin | None:
    """The variable whose buffers a slice of Arrow's drags along."""
    at = address(value)
    if not at or not drags(value):
        return None
    return _own(lambda own: address(own) == at and own.nbytes > value.nbytes, stack)


def _given(value: Any, stack: Stack) -> Origin | None:
    """The user's variable that one of the functions that they called was given."""
    for scope in stack.called():
        for given in list(scope.variables.values()):
            if given is not value and is_kin(value, given) and (found := find(given, stack)):
                return found
    return None


def _own(fits: Any, stack: Stack) -> Origin | None:
    """The first of the user's variables that fits."""
    for scope in stack.user():
        for name, own in list(scope.variables.items()):
            if fits(own):
                return origin_of(scope, name)
    for module, variables in stack.modules():
        for name, own in list(variables.items()):
            if fits(own):
                return Origin(name, *place_in_module(module, name))
    return None


def parent(value: Any) -> Any:
    """The array of which an array is a view; else the value itself."""
    for _ in range(_VIEWS):
        base = value.base if is_numpy(value) else None
        if base is None or not is_numpy(base):
            break
        value = base
    return value


def extent(value: Any) -> tuple[int, Any, Any]:
    """Where an array's elements are: of two pieces of one array it is not the same."""
    return value.__array_interface__["data"][0], value.shape, value.strides


def is_numpy(value: object) -> bool:
    """Whether it is one of numpy's own arrays."""
    return is_a(value, "numpy", "ndarray") and package_of(type(value)) == "numpy"


def is_empty(value: Any) -> bool:
    """Whether an array has no elements: it may be a view, but holds nothing of its parent's."""
    return is_numpy(value) and value.size == 0


def is_kin(value: Any, given: Any) -> bool:
    """Whether a value may have been made from what a function was given."""
    if is_a(value, "pandas.core.generic", "NDFrame") and type(value) is type(given):
        return kind_of(value) != CUSTOM and len(value) <= len(given)
    return is_copy(parent(value), given)


def is_copy(value: Any, own: Any) -> bool:
    """Whether a value is a copy, or (lists) a part, of another."""
    if type(value) is list and type(own) in (list, tuple):
        return value is not own and _slice_of(value, own)
    if type(value) is not type(own) or not is_numpy(value):
        return False
    if value.shape != own.shape or value.dtype != own.dtype or value.dtype.hasobject:
        return False
    return sampled(value) == sampled(own)


def sampled(value: Any) -> bytes:
    """Some elements of an array that has no objects."""
    found: bytes = value.flat[:: max(1, value.size // SAMPLED)].tobytes()
    return found


def _slice_of(value: list[Any], own: list[Any] | tuple[Any, ...]) -> bool:
    """Whether the elements of one list are a run of another's."""
    size, rest = len(value), len(own) - len(value)
    if not size or rest < 0:
        return False
    first, last = value[0], value[-1]
    starts: Iterator[int] = iter(range(rest + 1) if len(own) <= LONGEST else (0, rest))
    return any(own[i] is first and own[i + size - 1] is last for i in starts)


def drags(value: Any) -> bool:
    """Whether a value of Arrow's is pickled with more than it shows."""
    total = getattr(value, "get_total_buffer_size", None)
    return total is not None and total() > 2 * value.nbytes


def address(value: Any) -> int:
    """Where the first buffer of a table or array of Arrow's is; 0 if it is none."""
    if package_of(type(value)) != "pyarrow":
        return 0
    try:
        for _ in range(3):  # a table's column, a column's chunk
            if hasattr(value, "buffers"):
                return next((b.address for b in value.buffers() if b is not None), 0)
            value = value.column(0) if hasattr(value, "column") else value.chunk(0)
    except Exception:  # it has no columns or rows, or is something else
        return 0
    return 0
