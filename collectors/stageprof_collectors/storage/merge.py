"""Many small batches of one place as one: ten a second from every worker would be slow to open.

Batches as they are shipped: int64 or float64 columns, keys one by one. Merged they say in
`merged` how many they were, so that what is missing between them is still counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from stageprof_collectors.storage.columns import Ints, narrowed
from stageprof_collectors.storage.key import join_arrays
from stageprof_collectors.storage.origin import Origin
from stageprof_collectors.storage.shipment import Column, Part, Shipment, decode
from stageprof_collectors.storage.words import decode_texts
from stageprof_runtime.errors import DamagedRecording
from stageprof_runtime.event import KEYS, TEXT, Place

#: Rows of a merged batch; a batch with more stays by itself.
MOST = 20_000


def merge(
    batches: Iterable[bytes], origins: dict[Place, Origin] | None = None, *, coarse: bool = False
) -> list[bytes]:
    """Batches as shipped, in order -> fewer as the file holds them; damaged ones as they are.

    Who reads those counts them. What came before is left out: what a killed worker had sent comes
    again with what it had not, and nobody could tell them apart once they are one batch.

    Args:
        batches: at most a few seconds' worth.
        origins: which have come so far, by place; these are added.
        coarse: keep instants of runs in units of 1,024 ns, which takes a fifth less room.
    """
    origins = {} if origins is None else origins
    lots: dict[Place, list[Shipment]] = {}
    rows: Counter[Place] = Counter()
    out: list[bytes] = []
    for batch in batches:
        shipment = _decoded(batch)
        if shipment is None:
            out.append(batch)
            continue
        place = shipment.place
        if not origins.setdefault(place, Origin(place)).take(shipment):
            continue
        more = sum(part.rows for part in shipment.parts.values())
        lot = lots.setdefault(place, [])
        if lot and not _fits(lot[-1], shipment, rows[place] + more):
            out.append(_joined(lot, coarse=coarse))
            lot.clear()
            rows[place] = 0
        lot.append(shipment)
        rows[place] += more
    return out + [_joined(lot, coarse=coarse) for lot in lots.values() if lot]


def _decoded(batch: bytes) -> Shipment | None:
    """A batch, or None if it is damaged."""
    try:
        shipment = decode(batch)
        decode_texts(shipment.strings)
    except (DamagedRecording, ValueError):
        return None
    return shipment


def _fits(last: Shipment, s: Shipment, rows: int) -> bool:
    """Whether a batch follows others without a gap, whole and as shipped; they have `rows` then."""
    plain = all(column[0] in "qdK" for part in s.parts.values() for column in part.columns.values())
    return s.seq == last.seq + 1 and rows <= MOST and plain and not s.skipped and not last.skipped


def _joined(lot: list[Shipment], *, coarse: bool) -> bytes:
    if len(lot) == 1:
        return narrowed(lot[0], coarse=coarse)
    strings: dict[str, int] = {"": 0}
    meanings = [_meaning(shipment, strings) for shipment in lot]
    parts: dict[str, Part] = {}
    for name in dict.fromkeys(name for shipment in lot for name in shipment.parts):
        mine = [(s.parts[name], m) for s, m in zip(lot, meanings, strict=True) if name in s.parts]
        parts[name] = _part(mine)
    text = msgspec.msgpack.encode(list(strings))
    last, merged = lot[-1], sum(s.merged for s in lot)
    whole = last._replace(
        strings=text, string_count=len(strings), parts=parts, merged=merged, first=lot[0].first
    )
    return narrowed(whole, coarse=coarse)


def _meaning(shipment: Shipment, strings: dict[str, int]) -> Ints:
    """For each text of a batch its index among those of all, and last -1 for what is none."""
    texts = decode_texts(shipment.strings)
    return np.array([*(strings.setdefault(t, len(strings)) for t in texts), -1], np.int64)


def _part(mine: list[tuple[Part, Ints]]) -> Part:
    fields = mine[0][0].columns
    columns = {field: _column(field, mine) for field in fields}
    return Part(sum(part.rows for part, _ in mine), columns)


def _column(field: str, mine: list[tuple[Part, Ints]]) -> Column:
    data = [part.columns[field][2] for part, _ in mine]
    if field in KEYS:
        return "K", 0, join_arrays(data)
    if field in TEXT:
        data = [_reindexed(each, m) for each, (_, m) in zip(data, mine, strict=True)]
    return mine[0][0].columns[field][0], 0, b"".join(data)


def _reindexed(data: bytes, meaning: Ints) -> bytes:
    indices = np.frombuffer(data, "<i8")
    valid = (indices >= 0) & (indices < len(meaning) - 1)
    return meaning[np.where(valid, indices, -1)].tobytes()
