"""Columns of integers, narrow for the file and wide for computing.

`stageprof_runtime.batch` documents the codes `q d B H I b h i`. A narrowed batch also has::

    T          three-byte unsigned offsets from base
    t          three-byte signed steps whose running sum is added to base
    C:field    C is B, H, T or I: offsets from base and from the other column `field` of the same
               table (value = field + base + offset); `shipment.RELATIVE` lists which columns
               may do so, and no chain of them closes
    C*         C* and C*:field are offsets and steps in units of 1,024 ns; `shipment.COARSE` lists
               which columns may be so
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
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.few import FEW, OFFSETS, STEPS, code_for, narrow_few
from stageprof_collectors.storage.shipment import (
    COARSE,
    RELATIVE,
    SIZES,
    UNIT,
    Column,
    Part,
    Shipment,
    decode,
)
from stageprof_runtime.batch import VERSION

Ints = NDArray[np.int64]
#: int64, or float64 for the columns of floats
Values = NDArray[Any]

_COARSE: Final = ("", "*")
_ENCODER: Final = msgspec.msgpack.Encoder()


def narrow(batch: bytes) -> bytes:
    """A batch as places ship it -> the same batch as the file holds it, several times smaller.

    A narrowed batch comes back equal in content.

    Raises:
        DamagedRecording: `batch` is none.
    """
    return narrowed(decode(batch))


def narrowed(shipment: Shipment, *, coarse: bool = False) -> bytes:
    """The same for a batch that was decoded; `coarse`: instants of runs downwards to 1,024 ns."""
    tables = {
        name: [part.rows, _narrow_table(name, part, coarse=coarse)]
        for name, part in shipment.parts.items()
    }
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


def _narrow_table(table: str, part: Part, *, coarse: bool) -> dict[str, Column]:
    if part.rows <= FEW and not (coarse and table in COARSE):
        narrowed = narrow_few(RELATIVE.get(table, {}), part)
        if narrowed is not None:
            return {**part.columns, **narrowed}
    others, rough = RELATIVE.get(table, {}), COARSE.get(table, frozenset()) if coarse else ()
    wide = {
        field: _in_units(np.frombuffer(data, "<i8"), UNIT if field in rough else 0, field == "cpu")
        for field, (code, _, data) in part.columns.items()
        if code == "q"
    }
    columns = {
        field: _narrow_column(column, others.get(field, ""), wide.get(others.get(field, "")))
        for field, column in wide.items()
    }
    return {**part.columns, **columns}


class _Wide(NamedTuple):
    """A column of int64, all of them a multiple of 1 << `shift`."""

    values: Ints
    shift: int


def _in_units(values: Ints, shift: int, length: bool) -> _Wide:  # noqa: FBT001
    """Instants downwards, so that what came before still does; a length to the nearest.

    What is unknown, -1, stays what it is.
    """
    if not shift or int(values.min()) < 0:
        return _Wide(values, 0)
    half = (1 << shift) // 2 if length and int(values.max()) < 2**62 else 0
    return _Wide((values + half) & -(1 << shift), shift)


def _narrow_column(column: _Wide, other: str, reference: _Wide | None) -> Column:
    """The narrowest of the codes, of equals the one that compresses best or reads quickest."""
    size, best = _as_offsets(column, "")
    if size > 1 and reference is not None and reference.shift >= column.shift:
        apart = _Wide(column.values - reference.values, column.shift)
        size, best = min(_as_offsets(apart, ":" + other), (size, best), key=_size)
    if size > 1:
        size, best = min((size, best), _as_steps(column), key=_size)
    return best


def _size(candidate: tuple[int, Column]) -> int:
    return candidate[0]


def _as_offsets(column: _Wide, suffix: str) -> tuple[int, Column]:
    values, shift = column
    low = int(values.min())
    span = (int(values.max()) - low) >> shift
    size, code = code_for(span, OFFSETS)
    if size > 8:
        return (9, ("", 0, b"")) if suffix else (8, ("q", 0, values.tobytes()))
    data = _to_bytes((values - low) >> shift, size)
    return size, (code + _COARSE[shift > 0] + suffix, low, data)


def _as_steps(column: _Wide) -> tuple[int, Column]:
    values, shift = column
    steps = np.empty_like(values)
    steps[0] = 0
    np.subtract(values[1:], values[:-1], out=steps[1:])
    steps >>= shift
    reach = max(int(steps.max()), ~int(steps.min()))
    size, code = code_for(reach, STEPS)
    if size > 8:
        return 9, ("", 0, b"")
    return size, (code + _COARSE[shift > 0], int(values[0]), _to_bytes(steps, size))


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
    values = _from_bytes(code[0], data)
    if code in "qd":
        return values
    if code.endswith(_COARSE[True]):
        values = values.astype(np.int64) << UNIT
    if code[0] in "bhti":
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
