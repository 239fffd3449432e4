"""Makes the golden recordings: run once per format version, and keep what it made for ever.

``python tests/data/make_golden.py`` writes `golden-<major>.<minor>.stageprof` beside itself and
refuses to replace one: a golden file that changes is no proof that old recordings still open.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.columns import narrow, narrowed
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.shipment import decode
from stageprof_runtime.batch import pack
from stageprof_runtime.event import FIELDS, KEYS, TEXT, Place

CLIENT = Place("client", "laptop", 100, "Client-1", 1)
WORKER = Place("worker", "node-1", 200, "tcp://10.0.0.2:40001", 7)

#: Keys of every type that Dask accepts, by row.
GOLDEN_KEYS = ("sum-0123", ("add-4567", 0, 1), 1, "1", b"raw", ("a", ("b", 2.5)), "\ud800", None)
#: Texts, one of which UTF-8 cannot carry.
GOLDEN_TEXTS = ("", "tcp://10.0.0.2:40001", "lone \udcff", "numpy.ndarray")


def rows(table: int, count: int) -> list[tuple[Any, ...]]:
    """Rows of a table that exercise every code: values grow by row and by field."""
    fields = list(enumerate(FIELDS[table]))
    return [(table, *(_value(field, n, row) for n, field in fields)) for row in range(count)]


def _value(field: str, n: int, row: int) -> Any:
    if field in KEYS:
        return GOLDEN_KEYS[row % len(GOLDEN_KEYS)]
    if field in TEXT:
        return GOLDEN_TEXTS[row % len(GOLDEN_TEXTS)]
    if field == "step":
        return row % 41
    n = min(n, 6)  # wide tables: their last values would not fit into 64 bits
    return row / 4 if field == "value" else 1000**n + row * 257**n


def batches() -> list[bytes]:
    """Two batches of the client, three of the worker (number 1 was lost), the last coarse."""
    every = [row for table in FIELDS for row in rows(table, 8)]
    drops = {"ring full": 5}
    return [
        pack(CLIENT, 0, 1000, every),
        pack(WORKER, 0, 5000, every, now=33, counts=(8, 4, 2)),
        pack(CLIENT, 1, 2000, []),
        pack(WORKER, 2, 6000, every, drops=drops, cost={"transition": [3, 900]}, now=2),
        pack(WORKER, 3, 7000, rows(3, 100), drops=drops),
    ]


def main() -> None:
    """Write the golden file of the current version."""
    path = Path(__file__).with_name(f"golden-{frame.MAJOR}.{frame.MINOR}.stageprof")
    if path.exists():
        raise SystemExit(f"{path} exists; golden recordings are never made anew")
    with Writer(path, {"program": "golden", "started": "2026-01-02T03:04:05Z"}) as writer:
        *first, last = batches()
        for batch in first:
            writer.write(narrow(batch))
        writer.write(narrowed(decode(last), coarse=True))


if __name__ == "__main__":
    main()
