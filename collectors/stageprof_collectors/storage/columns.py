"""Columns of integers, narrow for the file and wide for computing.

`stageprof_runtime.batch` documents the codes `q d B H I b h i`. A narrowed batch also has::

    T          three-byte unsigned offsets from base
    t          three-byte signed steps whose running sum is added to base
    C:field    C is B, H, T or I: offsets from base and from the other column `field` of the same
               table (value = field + base + offset); `shipment.RELATIVE` lists which columns
               may do so, and no chain of them closes
    K          a key column: base 0, and the msgpack array of the keys as bytes, so that a reader
               need not build a million keys to see a million start times; no key exceeds
               1,024 bytes, longer ones end in a hash

and beside `seq` and `t`, which are those of the last batch that it was made of::

    merged     how many batches (absent: 1); their sequence numbers have no gap
    first      clock of the place when the first of them was packed (absent: t)

All arithmetic wraps at 64 bits, so every int64 survives the round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.shipment import RELATIVE, SIZES, Column, Part, Shipment, decode
from stageprof_runtime.batch import VERSION

Ints = NDArray[np.int64]
#: int64, or float64 for the columns of floats
Values = NDArray[Any]

_OFFSETS: Final = ((1 << 8, "B"), (1 << 16, "H"), (1 << 24, "T"), (1 << 32, "I"))
_STEPS: Final = ((1 << 7, "b"), (1 << 15, "h"), (1 << 23, "t"), (1 << 31, "i"))
_ENCODER: Final = msgspec.msgpack.Encoder()


def narrow(batch: bytes) -> bytes:
    """A batch as places ship it -> the same batch as the file holds it, several times smaller.

    A narrowed batch comes back equal in content.

    Raises:
        DamagedRecording: `batch` is none.
    """
    return narrowed(decode(batch))


def narrowed(shipment: Shipment) -> bytes:
    """The same for a batch that was decoded."""
    tables = {name: [part.rows, _narrow_table(name, part)] for name, part in shipment.parts.items()}
    return _encode(shipment, tables)


def _encode(s: Shipment, tables: dict[str, list[Any]]) -> bytes:
    return _ENCODER.encode(
        {
            "v": VERSION,
            "place": s.place,
            "seq": s.seq,
            "t": s.t,
            "drops": msgspec.Raw(s.drops),
            "cost": msgspec.Raw(s.cost),
            "now": s.now,
            "counts": s.counts,
            "merged": s.merged,
            "first": s.first,
            "strings": msgspec.Raw(s.strings),
            "tables": tables,
        }
    )


def _narrow_table(table: str, part: Part) -> dict[str, Column]:
    wide: dict[str, Ints] = {}
    for field, (code, _, data) in part.columns.items():
        if code == "q":
            wide[field] = np.frombuffer(data, "<i8")
    others = RELATIVE.get(table, {})
    narrowed = {
        field: _narrow_column(values, others.get(field, ""), wide.get(others.get(field, "")))
        for field, values in wide.items()
    }
    return {**part.columns, **narrowed}


def _narrow_column(values: Ints, other: str, reference: Ints | None) -> Column:
    """The narrowest of the codes; a tie goes to the offsets, which are the quickest to read."""
    size, column = _as_offsets(values, "")
    if size > 1 and reference is not None:
        size, column = min((size, column), _as_offsets(values - reference, ":" + other), key=_size)
    if size > 1:
        size, column = min((size, column), _as_steps(values), key=_size)
    return column


def _size(candidate: tuple[int, Column]) -> int:
    return candidate[0]


def _as_offsets(values: Ints, suffix: str) -> tuple[int, Column]:
    low = int(values.min())
    span = int(values.max()) - low
    for limit, code in _OFFSETS:
        if span < limit:
            return SIZES[code], (code + suffix, low, _to_bytes(values - low, SIZES[code]))
    return (9, ("", 0, b"")) if suffix else (8, ("q", 0, values.tobytes()))


def _as_steps(values: Ints) -> tuple[int, Column]:
    steps = np.empty_like(values)
    steps[0] = 0
    np.subtract(values[1:], values[:-1], out=steps[1:])
    reach = max(int(steps.max()), ~int(steps.min()))
    for limit, code in _STEPS:
        if reach < limit:
            return SIZES[code], (code, int(values[0]), _to_bytes(steps, SIZES[code]))
    return 9, ("", 0, b"")


def _to_bytes(values: Ints, size: int) -> bytes:
    """The lowest `size` bytes of each value, little-endian."""
    if size == 3:
        octets = values.astype("<i4", copy=False).view(np.uint8).reshape(-1, 4)
        return octets[:, :3].tobytes()
    return values.astype(f"<i{size}").tobytes()


def widen(table: str, parts: Sequence[Part]) -> dict[str, Values]:
    """The numeric columns of one table over several batches, joined in order.

    Returns:
        By field an int64 (or float64) array with a value per row of all parts, of columns that
        all parts have. Not a copy where the bytes are that already; do not write to it.
    """
    rows = np.array([part.rows for part in parts], np.int64)
    wide: dict[str, Values] = {}
    fields = [f for f, column in parts[0].columns.items() if column[0] not in "Kk"] if parts else []
    for field in sorted(fields, key=lambda f: _depth(table, f)):
        wide[field] = _widen_column([part.columns[field] for part in parts], rows, wide)
    return {field: wide[field] for field in fields}


def _depth(table: str, field: str) -> int:
    """How many other columns must be widened before this one."""
    other = RELATIVE.get(table, {}).get(field)
    return 0 if other is None else 1 + _depth(table, other)


def _widen_column(columns: list[Column], rows: Ints, wide: dict[str, Values]) -> Values:
    # unzipped and picked by itertools: a loop over a hundred thousand columns would cost as much
    # as all of numpy's work on them
    codes, bases, data = zip(*columns, strict=True)
    starts = np.fromiter(bases, np.int64, len(bases))
    different = dict.fromkeys(codes)
    if len(different) == 1:
        return _widen_code(codes[0], starts, b"".join(data), rows, wide, np.s_[:])
    numbers = {code: number for number, code in enumerate(different)}
    which = np.fromiter(map(numbers.__getitem__, codes), np.int8, len(codes))
    out = np.empty(int(rows.sum()), np.int64)
    for code, number in numbers.items():
        chosen = which == number
        where = np.flatnonzero(np.repeat(chosen, rows))
        joined = b"".join(compress(data, chosen.tolist()))
        out[where] = _widen_code(code, starts[chosen], joined, rows[chosen], wide, where)
    return out


def _widen_code(
    name: str, bases: Ints, data: bytes, rows: Ints, wide: dict[str, Values], where: Any
) -> Values:
    """Columns of one and the same code; `where` picks their rows out of the whole table."""
    code, _, other = name.partition(":")
    values = _from_bytes(code, data)
    if code in "qd":
        return values
    if code in "bhti":
        return _running_sums(values, bases, rows)
    wider = values + (bases if len(bases) == 1 else np.repeat(bases, rows))
    return wider + wide[other][where] if other else wider


def _running_sums(steps: Values, bases: Ints, rows: Ints) -> Ints:
    """Each part's base plus the sums of its steps, begun anew in each part."""
    sums = np.cumsum(steps, dtype=np.int64)
    ends = np.concatenate([[0], sums])[np.cumsum(rows) - rows]
    result: Ints = sums + np.repeat(bases - ends, rows)
    return result


def _from_bytes(code: str, data: bytes) -> Values:
    if code in "qd":
        return np.frombuffer(data, "<i8" if code == "q" else "<f8")
    if code in "Tt":
        # placed in the upper three bytes, so that a shift restores the sign
        octets = np.zeros((len(data) // 3, 4), np.uint8)
        octets[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        whole = octets.reshape(-1).view("<i4" if code == "t" else "<u4")
        return (whole >> 8).astype(np.int64)
    return np.frombuffer(data, "<u" + str(SIZES[code]) if code in "BHI" else f"<i{SIZES[code]}")
