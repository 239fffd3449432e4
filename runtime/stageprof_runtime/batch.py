"""A batch: the unit of shipping, of the recording file and of the live view.

A batch is one msgpack map::

    v        1
    place    [role, host, pid, name, life]
    seq      0, 1, 2, ... without gaps within one place's life
    t        clock of the place when packed, ns
    drops    {reason: rows lost so far since the place began}
    cost     {hook: [calls, ns]} own cost so far
    now      code of the step that the place is in (0: none), for the live view
    counts   [tasks, assigned, finished] so far, for the live view (scheduler and local client)
    strings  [text, ...]: what text fields index
    tables   {name: [rows, {field: column}]}

A column is `[code, base, bytes]`, little-endian: `q` the int64 itself (base 0), `d` float64,
`B H I` unsigned offsets from base, `b h i` unsigned steps whose running sum is added to base
(the first step is 0 or more from base). A key column is `["k", 0, [key, ...]]`.
Places ship `q` and `d`; the collector narrows columns before it writes them.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgpack

from stageprof_runtime.event import FIELDS, KEYS, TABLES, TEXT, Place

VERSION = 1

Row = tuple[Any, ...]
Column = list[Any]


def pack(
    place: Place,
    seq: int,
    t: int,
    rows: Iterable[Row],
    *,
    drops: dict[str, int] | None = None,
    cost: dict[str, list[int]] | None = None,
    now: int = 0,
    counts: Sequence[int] = (0, 0, 0),
) -> bytes:
    """Rows as emitted by probes -> the bytes of one batch.

    Raises:
        TypeError, ValueError, OverflowError: a field holds what its column cannot.
    """
    strings: dict[str, int] = {"": 0}
    batch = {
        "v": VERSION,
        "place": [_utf8(value) if type(value) is str else value for value in place],
        "seq": seq,
        "t": t,
        "drops": drops or {},
        "cost": cost or {},
        "now": now,
        "counts": list(counts),
        "tables": _tables(rows, strings),
        "strings": list(strings),
    }
    packed: bytes = msgpack.packb(batch, default=safe_key, unicode_errors="surrogatepass")
    return packed


def pack_sound(
    place: Place, seq: int, t: int, rows: Sequence[Row], drops: dict[str, int], **told: Any
) -> tuple[bytes, dict[str, int]]:
    """The same without the rows that cannot be packed, and how many these are, by reason.

    The batch tells of them among its drops.
    """
    try:
        return pack(place, seq, t, rows, drops=drops, **told), {}
    except Exception as error:
        sound = [row for row in rows if _is_sound(place, row)]
        why, lost = f"not packable: {type(error).__name__}", len(rows) - len(sound)
        said = drops | {why: drops.get(why, 0) + lost}
        return pack(place, seq, t, sound, drops=said, **told), {why: lost}


def _is_sound(place: Place, row: Row) -> bool:
    try:
        pack(place, 0, 0, [row])
    except Exception:
        return False
    return True


def _tables(rows: Iterable[Row], strings: dict[str, int]) -> dict[str, list[Any]]:
    by_table: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_table[row[0]].append(row)
    return {TABLES[t]: [len(rs), _columns(t, rs, strings)] for t, rs in by_table.items()}


def _columns(table: int, rows: list[Row], strings: dict[str, int]) -> dict[str, Column]:
    columns = zip(*rows, strict=True)
    next(columns)
    return {
        field: _column(field, values, strings)
        for field, values in zip(FIELDS[table], columns, strict=True)
    }


def _column(field: str, values: tuple[Any, ...], strings: dict[str, int]) -> Column:
    if field in KEYS:
        return ["k", 0, list(values)]
    if field in TEXT:
        return ["q", 0, _bytes(array("q", [_intern(v, strings) for v in values]))]
    if field == "value":
        return ["d", 0, _bytes(array("d", values))]
    try:
        whole = array("q", values)
    except TypeError:  # sizes are what the user's own `sizeof` says, which may be a float
        whole = array("q", map(int, values))
    return ["q", 0, _bytes(whole)]


def _intern(text: object, strings: dict[str, int]) -> int:
    return strings.setdefault(text if type(text) is str else str(text)[:1000], len(strings))


def _bytes(values: array[Any]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _utf8(text: str) -> str:
    """The text; the name of a host may hold bytes that are none of UTF-8, as surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def safe_key(key: object) -> object:
    """A key of a type that msgpack does not know, as its text; never raises."""
    try:
        return str(key)[:1000]
    except Exception:
        return f"<{type(key).__name__}>"


def together(batches: Iterable[bytes], most: int) -> Iterator[list[bytes]]:
    """Packed batches in groups of at most so many bytes; a larger one is a group of its own."""
    group: list[bytes] = []
    size = 0
    for batch in batches:
        if group and size + len(batch) > most:
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch)
    if group:
        yield group
