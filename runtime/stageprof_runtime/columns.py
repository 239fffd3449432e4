"""What the columns of a pandas frame hold, told from the types of a few of their values.

Runs no code of the user's: only frames of pandas itself are looked at, only columns that are named
by a text, and values are asked for nothing but their type.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: Columns, and values of each, that are looked at: about 30 us a column.
COLUMNS: Final = 60
VALUES: Final = 200
#: A frame with fewer rows tells nothing of what takes time.
ROWS: Final = 1_000
#: What a value takes beside the reference to it, where it is of another type.
_OTHER: Final = 56

_KINDS: Final = {
    id(str): "string",
    id(int): "integer",
    id(bool): "boolean",
    id(float): "float",
    id(bytes): "bytes",
    id(decimal.Decimal): "decimal",
    id(dt.date): "date",
    id(dt.datetime): "datetime",
}


class Held(NamedTuple):
    """One column: its name, dtype, what its values are, and how many bytes they take about."""

    name: str
    dtype: str
    #: of an object column: "string", "integer", ...; "decimal 2" has two places; " or missing"
    #: follows where some are; "" if they are mixed or of types that no dtype holds
    kind: str
    nbytes: int


def held(frame: Any) -> Iterator[Held]:
    """The columns of a frame; of none that is not pandas' own or has few rows."""
    pandas = sys.modules.get("pandas")
    if pandas is None or type(frame) is not pandas.DataFrame or len(frame) < ROWS:
        return
    labels, dtypes = list(frame.columns), list(frame.dtypes.array)
    for i, (label, dtype) in enumerate(zip(labels[:COLUMNS], dtypes, strict=False)):
        if type(label) is not str:
            continue
        values = frame.iloc[:, i].array
        if getattr(dtype, "kind", "") != "O" or str(dtype) != "object":
            yield Held(label, str(dtype), "", int(values.nbytes))
        else:
            kind, each = _judged(list(values[:VALUES]))
            yield Held(label, "object", kind, len(frame) * (8 + each))


#: The kind of values of which none is there.
MISSING: Final = "missing"


def _judged(values: list[Any]) -> tuple[str, int]:
    """The kind of some values, and the bytes of one of them."""
    there = [value for value in values if not _missing(value)]
    kinds = {_KINDS.get(id(type(value)), "") for value in there}
    each = sum(map(_size, there)) // max(1, len(there))
    if not there:
        return MISSING, each
    if len(kinds) != 1 or "" in kinds:
        return "", each
    kind = kinds.pop()
    if kind == "decimal":
        kind += f" {max(_places(value) for value in there)}"
    return kind + " or missing" * (len(there) < len(values)), each


def _missing(value: Any) -> bool:
    cls = type(value)
    if value is None or (cls is float and value != value):  # noqa: PLR0124 (nan)
        return True
    pandas = sys.modules["pandas"]
    return value is pandas.NA or value is pandas.NaT


def _size(value: Any) -> int:
    return sys.getsizeof(value) if id(type(value)) in _KINDS else _OTHER


def _places(value: decimal.Decimal) -> int:
    """Digits after the point; of infinities and the like none."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if type(exponent) is int else 0
