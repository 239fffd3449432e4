"""How many bytes a value will take in a pickle, about, without running any code of the user's.

Exact for arrays, texts and buffers; containers and objects are estimated from a bounded number of
their elements, so that a dict of a million entries is weighed as fast as one of a hundred. What
really was sent is measured while it is pickled (`pickling.py`); this says where to look.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Final

from stageprof_runtime.kinds import (
    ATOM,
    CONTAINER,
    FUNCTION,
    STRUCTURE,
    TEXT,
    attributes,
    is_a,
    kind_of,
    package_of,
    title,
)

#: Elements of a container that stand for all of it, from its beginning and (lists) its end.
SAMPLED: Final = 8
#: Levels below a value that are looked at: a model's layers' parameters' arrays are four.
DEPTH: Final = 6
#: Values looked at for one weight; at some 0.3 us each, less than a millisecond. A column of a
#: frame takes as long as so many.
MOST: Final = 2000
COLUMN: Final = 20
#: No weight is more: they are summed in 64 bits.
LARGEST: Final = 2**56
#: Columns of a frame that stand for all of it: each takes some microseconds.
COLUMNS: Final = 100
#: A number, reference or small object in a pickle takes about so much.
_SMALL: Final = 8


class _Scale:
    """One weighing: what was seen in it already, and how much it may still look at."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.left = MOST

    def weigh(self, value: object, depth: int) -> int:
        kind = kind_of(value)
        if kind in (ATOM, FUNCTION):
            return _SMALL
        if kind == TEXT:
            return _text(value)
        if id(value) in self.seen or depth <= 0 or self.left <= 0:
            return _SMALL
        self.seen.add(id(value))
        self.left -= 1
        if kind == CONTAINER:
            return self._container(value, depth - 1)
        return self._data(value, depth - 1)

    def _container(self, value: Any, depth: int) -> int:
        size = len(value)
        if type(value) is dict:
            some: list[Any] = _some(value.items(), size)
        else:
            some = [(v,) for v in _some(value, size)]
        looked: list[int] = []
        for parts in some:
            if looked and self.left <= 0:  # those before stand for the rest
                break
            looked.append(sum(self.weigh(part, depth) for part in parts))
        return _SMALL + (sum(looked) * size // len(looked) if looked else 0)

    def _data(self, value: Any, depth: int) -> int:
        known = buffers(value)
        if known is not None:
            self.left -= COLUMN * _columns_asked(value)
            return known
        inside = list(attributes(value).values())
        if is_a(value, "builtins", "dict"):
            inside.append(dict(dict.items(value)))
        elif is_a(value, "builtins", "list"):
            inside.append(list.copy(value))
        return _SMALL + sum(self.weigh(v, depth) for v in inside)


def weigh(value: object) -> int:
    """Estimated bytes of a value in a pickle."""
    return min(_Scale().weigh(value, DEPTH), LARGEST)


def _text(value: Any) -> int:
    if type(value) is memoryview:
        try:
            return value.nbytes
        except ValueError:  # it was released
            return 0
    return len(value) * getattr(value, "itemsize", 1)


def _some(values: Iterable[Any], size: int) -> list[Any]:
    """The first elements, and of a list or tuple the last ones."""
    if size <= 2 * SAMPLED:
        return list(values)
    first = list(itertools.islice(values, SAMPLED))
    if type(values) is list or type(values) is tuple:
        first += values[-SAMPLED:]
    return first


def buffers(value: Any) -> int | None:
    """Bytes of an array, frame or other value that is made of buffers; None if it is none.

    Only classes of numpy, pandas, pyarrow and scipy themselves are asked: a class derived from
    one may run anything.
    """
    measure = _MEASURES.get(title(type(value)))
    if measure is None:
        return None
    try:
        return int(measure(value))
    except Exception:  # a version of the library where it is another way
        return None


def _array(value: Any) -> int:
    if not value.dtype.hasobject:
        return int(value.nbytes)
    sample = value.flat[:SAMPLED].tolist()
    each = sum(map(weigh, sample)) // len(sample) if sample else 0
    return int(value.size) * (each or _SMALL)


#: Whose arrays may be asked for their size.
_ASKED: Final = frozenset({"numpy", "pandas", "pyarrow"})


def _frame(value: Any) -> int:
    """Bytes of a pandas frame, series or index: of its columns, and of a sample of objects."""
    if value.ndim == 2 and value.shape[1] > COLUMNS:
        return _frame(value.iloc[:, :COLUMNS]) * int(value.shape[1]) // COLUMNS
    dtypes = list(value.dtypes) if value.ndim == 2 else [value.dtype]
    if any(package_of(type(dtype)) not in _ASKED for dtype in dtypes):
        return len(value) * len(dtypes) * _SMALL  # what measures them is the user's
    if not hasattr(value, "index"):  # it is an index itself
        return int(value.memory_usage(deep=False)) + _objects(value)
    usage = value.memory_usage(index=False, deep=False)
    total = int(usage if isinstance(usage, int) else usage.sum()) + _index(value.index)
    return total + sum(_objects(column) for column in _columns(value))


def _index(index: Any) -> int:
    """Bytes of the index of a frame; of several levels without asking it.

    Pandas before 3 would look for the place of each row, and keep what it found in the index.
    """
    if not is_a(index, "pandas", "MultiIndex"):
        return int(index.memory_usage(deep=False))
    return sum(int(codes.nbytes) for codes in index.codes) + sum(map(weigh, index.levels))


def _columns_asked(value: Any) -> int:
    """How many columns of a frame its weight is that of; arrays are asked once."""
    if _MEASURES[title(type(value))] is not _frame or value.ndim != 2:
        return 0
    return min(int(value.shape[1]), COLUMNS)


def _columns(value: Any) -> list[Any]:
    if value.ndim == 1:
        return [value]
    return [value.iloc[:, i] for i, kind in enumerate(value.dtypes) if _is_object(kind)]


def _is_object(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "O" and is_a(dtype, "numpy", "dtype")


def _objects(column: Any) -> int:
    if not _is_object(column.dtype):
        return 0
    sample = list(column.array[:SAMPLED])
    return len(column) * sum(map(weigh, sample)) // len(sample) if sample else 0


def _sparse(value: Any) -> int:
    parts = [getattr(value, name, None) for name in ("data", "indices", "indptr", "row", "col")]
    return sum(_array(part) for part in parts if is_a(part, "numpy", "ndarray"))


_MEASURES: Final[dict[str, Any]] = {
    "numpy.ndarray": _array,
    "numpy.memmap": _array,
    "pandas.core.frame.DataFrame": _frame,
} | {f"numpy.{name}": _array for name in ("ma.MaskedArray", "MaskedArray", "recarray")}
for _kind in ("DataFrame", "Series", "Index", "RangeIndex", "DatetimeIndex"):
    _MEASURES[f"pandas.{_kind}"] = _frame
_MEASURES["pandas.MultiIndex"] = _index
for _kind in ("Table", "RecordBatch", "ChunkedArray", "Buffer", "lib.Table"):
    _MEASURES[f"pyarrow.{_kind}"] = lambda value: (
        value.size if hasattr(value, "size") else value.get_total_buffer_size()
    )
for _kind in ("csr", "csc", "coo", "bsr", "dia"):
    for _suffix in ("matrix", "array"):
        _MEASURES[f"scipy.{_kind}_{_suffix}"] = _sparse

__all__ = ["STRUCTURE", "buffers", "weigh"]
