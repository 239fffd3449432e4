"""Narrowing columns of a few rows: as lists, for to call numpy would take several times as long.

Most tables that come from a place in half a second are so short. What comes out is the same, byte
by byte, as `columns` makes of many rows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from stageprof_collectors.storage.shipment import SIZES, Column, Part

#: How far offsets from a column's lowest value and steps from one value to the next reach, by code.
OFFSETS: Final = ((1 << 8, "B"), (1 << 16, "H"), (1 << 24, "T"), (1 << 32, "I"))
STEPS: Final = ((1 << 7, "b"), (1 << 15, "h"), (1 << 23, "t"), (1 << 31, "i"))
#: Tables of so many rows are short.
FEW: Final = 32
#: With values as large, or as far below 0, a difference of two might need more than 64 bits.
LARGE: Final = 1 << 62


def narrow_few(others: dict[str, str], part: Part) -> dict[str, Column] | None:
    """What `_narrow_column` makes of each column; None if a value is too large for that."""
    wide = {
        field: struct.unpack(f"<{part.rows}q", data)
        for field, (code, _, data) in part.columns.items()
        if code == "q"
    }
    if any(max(values) >= LARGE or min(values) <= -LARGE for values in wide.values()):
        return None
    return {
        field: _few(values, others.get(field, ""), wide.get(others.get(field, "")))
        for field, values in wide.items()
    }


def _few(values: Sequence[int], other: str, reference: Sequence[int] | None) -> Column:
    low = min(values)
    span = max(values) - low
    if span < 1 << 8:  # most are
        return "B", low, bytes([v - low for v in values])
    size, code = code_for(span, OFFSETS)
    base, apart = low, values
    if reference is not None:
        distances = [v - r for v, r in zip(values, reference, strict=True)]
        nearest = min(distances)
        closer = code_for(max(distances) - nearest, OFFSETS)
        if closer[0] <= min(size, 8):
            (size, code), base, apart = closer, nearest, distances
            code += ":" + other
    if size > 1:
        steps = [0, *(after - before for before, after in pairwise(values))]
        shorter = code_for(max(*steps, ~min(steps)), STEPS)
        if shorter[0] < size:
            return shorter[1], values[0], _packed(steps, *shorter)
    if size > 8:
        return "q", 0, struct.pack(f"<{len(values)}q", *values)
    return code, base, _packed([v - base for v in apart], size, code[0])


def code_for(reach: int, codes: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """The size and name of the narrowest code that reaches so far; 9 if none does."""
    return next(((SIZES[code], code) for limit, code in codes if reach < limit), (9, ""))


def _packed(values: Sequence[int], size: int, code: str) -> bytes:
    if size == 3:
        return b"".join([v.to_bytes(3, "little", signed=code == "t") for v in values])
    return struct.pack(f"<{len(values)}{code}", *values)
