"""One batch, decoded and checked: the only way from bytes of others into the collectors.

Nothing is built for what a batch merely claims: unknown tables, columns and fields are skipped by
the decoder, counts are compared with the bytes that are there, keys stay packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from stageprof_collectors.storage.key import count_of, pack_keys
from stageprof_runtime.batch import VERSION
from stageprof_runtime.errors import DamagedRecording
from stageprof_runtime.event import FIELDS, KEYS, TABLES, Place
from stageprof_runtime.stage import STEPS

#: `[code, base, bytes]` of a numeric column, `["K", 0, packed array]` of a key column.
Column = tuple[str, int, bytes]

#: Bytes per row of each column code (relative codes are these plus `:field`).
SIZES: Final = {"q": 8, "d": 8, "B": 1, "H": 2, "T": 3, "I": 4, "b": 1, "h": 2, "t": 3, "i": 4}

#: For each table the columns that may be stored as offsets from another column of the table.
RELATIVE: Final[dict[str, dict[str, str]]] = {
    "span": {"start": "stop"},
    "assign": {"cause": "run"},
    "run": {"start": "stop", "ready": "start", "received": "ready"},
    "ping": {"received": "sent"},
    "block": {"stop": "start"},
    "graph": {"stop": "start"},
    "depend": {"on": "run"},
}

#: For each table the columns that may be in units of 1 << `UNIT` ns. Dask's own times, floats of
#: seconds since 1970, are told to 238 ns, and a hook takes some microseconds.
COARSE: Final[dict[str, frozenset[str]]] = {
    "assign": frozenset({"t"}),
    "finish": frozenset({"t"}),
    "run": frozenset({"received", "ready", "start", "stop", "cpu"}),
}
UNIT: Final = 10

#: More rows of one table, or strings, than any place ships in a batch (its ring is smaller).
MAX_ROWS: Final = 1 << 20
MAX_STRINGS: Final = 1 << 18

#: More distinct drop reasons or hooks than there are.
_MAX_NAMES: Final = 1 << 12

#: A number that an int64 can hold; the decoder checks it.
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Merged = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

#: Columns of float64; all others but the keys hold integers.
FLOATS: Final = frozenset({"value"})


class Part(NamedTuple):
    """The rows of one table in one batch, columns still packed."""

    rows: int
    columns: dict[str, Column]


class Shipment(NamedTuple):
    """A batch whose every number was checked; see `stageprof_runtime.batch` for the fields."""

    place: Place
    seq: int
    t: int
    #: msgpack maps, decoded when somebody asks
    drops: bytes
    cost: bytes
    now: int
    counts: tuple[int, int, int]
    #: a msgpack array, and how many texts it holds
    strings: bytes
    string_count: int
    parts: dict[str, Part]
    #: what was left out, by reason
    skipped: dict[str, int]
    #: how many batches it was made of (`seq` is the last one's), and when the first was packed
    merged: int
    first: int


def _struct(name: str, fields: dict[str, Any]) -> Any:
    return msgspec.defstruct(name, [(f, t | None, None) for f, t in fields.items()], gc=False)


def _tables(payload: Any) -> Any:
    """The type of all tables, with `payload` as the type of a column's values."""
    column: Any = tuple[str, _Int64, payload]
    tables: dict[str, Any] = {}
    for number, fields in FIELDS.items():
        rows: Any = _struct(TABLES[number], dict.fromkeys(fields, column))
        tables[TABLES[number]] = tuple[int, rows]
    return _struct("Tables", tables)


class _Envelope(Struct, gc=False):
    v: int
    place: tuple[str, str, _Int64, str, _Int64]
    seq: _Count
    t: _Int64
    drops: Raw
    cost: Raw
    now: _Int64
    counts: tuple[_Int64, _Int64, _Int64]
    strings: Raw
    tables: Raw
    merged: _Merged = 1
    first: _Int64 = 0


#: A map of nothing.
_EMPTY: Final = b"\x80"
_ENVELOPE: Final = msgspec.msgpack.Decoder(_Envelope)
#: A file holds bytes in every column; a shipped batch has lists of keys, which Raw takes as well.
_PACKED: Final = msgspec.msgpack.Decoder(_tables(bytes))
_SHIPPED: Final = msgspec.msgpack.Decoder(_tables(Raw))
_BYTES: Final = msgspec.msgpack.Decoder(bytes)
_KEYS: Final = msgspec.msgpack.Decoder(list[Raw])
_ERRORS: Final = (msgspec.MsgspecError, ValueError, KeyError, RecursionError, MemoryError)


def decode(batch: bytes | memoryview) -> Shipment:
    """A batch, as shipped or as narrowed, in its checked form.

    Raises:
        DamagedRecording: it is no batch. A table that is wrong within a batch is left out and
            counted in `skipped` instead.
    """
    try:
        return _decode(batch)
    except _ERRORS as error:
        raise DamagedRecording(
            f"a batch cannot be read ({error or type(error).__name__})",
            expected="a batch as stageprof writes it",
            do="check that all places run the same version of stageprof",
        ) from error


def _decode(batch: bytes | memoryview) -> Shipment:
    e = _ENVELOPE.decode(batch)
    if e.v != VERSION:
        raise ValueError(f"batch version {e.v}, expected {VERSION}")
    strings = bytes(e.strings)
    count = count_of(strings)
    if not 0 <= count <= MAX_STRINGS:
        raise ValueError("its strings are no list of a sensible length")
    skipped: dict[str, int] = {}
    parts = _parts(e.tables, skipped)
    now = e.now if 0 <= e.now < len(STEPS) else 0
    return Shipment(
        Place(*e.place), e.seq, e.t, _names(e.drops), _names(e.cost), now, e.counts,
        strings, count, parts, skipped, min(e.merged, e.seq + 1), e.first or e.t,
    )  # fmt: skip


def _names(raw: Raw) -> bytes:
    """The map if its size is sensible, else an empty one: no reason to lose the rows."""
    data = bytes(raw)
    return data if data == _EMPTY or 0 <= _map_count(data) <= _MAX_NAMES else _EMPTY


def _map_count(data: bytes | memoryview) -> int:
    """How many entries the msgpack map that begins here claims to have; -1: it is none."""
    if 0x80 <= data[0] <= 0x8F:
        return data[0] & 0x0F
    width = {0xDE: 2, 0xDF: 4}.get(data[0])
    return -1 if width is None else int.from_bytes(data[1 : 1 + width], "big")


def _parts(raw: Raw, skipped: dict[str, int]) -> dict[str, Part]:
    if memoryview(raw)[0] == _EMPTY[0]:  # a place has nothing to tell, but is there
        return {}
    packed = True
    try:
        tables = _PACKED.decode(raw)
    except msgspec.ValidationError:
        tables, packed = _SHIPPED.decode(raw), False
    parts: dict[str, Part] = {}
    present = 0
    for name, table in zip(_CODES, msgspec.structs.astuple(tables), strict=True):
        if table is not None:
            present += 1
            _add_part(parts, name, table, skipped, packed=packed)
    unknown = _map_count(memoryview(raw)) - present
    if unknown > 0:
        skipped["unknown tables"] = unknown
    return parts


def _add_part(
    parts: dict[str, Part],
    name: str,
    table: tuple[int, Any],
    skipped: dict[str, int],
    *,
    packed: bool,
) -> None:
    rows, columns = table
    found = msgspec.structs.astuple(columns)
    try:
        checked = _checked(name, rows, found if packed else map(_unwrap, found))
    except _ERRORS:
        skipped[f"damaged table {name}"] = 1
        return
    if len(checked) < len(found):
        skipped[f"missing columns of {name}"] = len(found) - len(checked)
        checked = {field: checked.get(field) or _absent(field, rows) for field in _CODES[name]}
    if rows:
        parts[name] = Part(rows, checked)


def _checked(name: str, rows: int, found: Iterable[Column | None]) -> dict[str, Column]:
    """The columns that are there, each with as many values as there are rows.

    Raises:
        ValueError, KeyError: one of them is not, or none is there to confirm the number of rows.
    """
    checked: dict[str, Column] = {}
    for (field, codes), column in zip(_CODES[name].items(), found, strict=True):
        if column is None:
            continue
        size = codes[column[0]]
        if len(column[2]) != rows * size and (size or count_of(column[2]) != rows):
            raise ValueError(field)
        checked[field] = column
    if not 0 <= rows <= MAX_ROWS or not checked:
        raise ValueError(rows)
    return checked


def _unwrap(column: tuple[str, int, Raw] | None) -> Column | None:
    """A column of a shipped batch in the form that a file has it in."""
    if column is None:
        return None
    code, base, raw = column
    if code != "k":
        return code, base, _BYTES.decode(raw)
    return "K", 0, pack_keys([bytes(key) for key in _KEYS.decode(raw)])


def _absent(field: str, rows: int) -> Column:
    """What a column that an older version did not write holds: zeros, not-a-number, no key."""
    if field in KEYS:
        return "K", 0, pack_keys([b"\xa0"] * rows)
    if field in FLOATS:
        return "d", 0, struct.pack("<d", float("nan")) * rows
    return "B", 0, bytes(rows)


def _codes(table: str, field: str) -> dict[str, int]:
    """Bytes per row of each code that this column may have; 0 for packed keys."""
    if field in KEYS:
        return {"K": 0}
    if field in FLOATS:
        return {"d": 8}
    codes = {code: size for code, size in SIZES.items() if code != "d"}
    other = RELATIVE.get(table, {}).get(field)
    if other:
        codes |= {f"{code}:{other}": SIZES[code] for code in "BHTI"}
    if field in COARSE.get(table, ()):
        codes |= {code[0] + "*" + code[1:]: size for code, size in codes.items() if code != "q"}
    return codes


#: Per table and column, in the order of the decoder's structs: the codes allowed there.
_CODES: Final[dict[str, dict[str, dict[str, int]]]] = {
    TABLES[number]: {field: _codes(TABLES[number], field) for field in fields}
    for number, fields in FIELDS.items()
}
