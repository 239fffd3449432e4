"""The tables of a shipped batch: their rows, and their columns without a row for each value."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from stageprof_runtime.event import FIELDS, TABLES

Batch = dict[str, Any]


def rows(batch: Batch, table: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a table of a shipped batch; texts are still indices."""
    part = batch["tables"].get(TABLES[table])
    if part is None:
        return iter(())
    return zip(*(values(part[1][field]) for field in FIELDS[table]), strict=True)


def values(column: Sequence[Any]) -> Sequence[Any]:
    """The values of one column of a shipped batch."""
    code, _, data = column
    if code == "k":
        keys: Sequence[Any] = data
        return keys
    numbers = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def column(numbers: array[int]) -> list[Any]:
    """Numbers as a column of a batch has them; they are not to be used any more."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return ["q", 0, numbers.tobytes()]
