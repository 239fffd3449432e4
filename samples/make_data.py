"""Writes the Parquet files that etl.py reads: orders and customers of a shop, made from a seed."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from program import Settings, parsed

SEED = 20_260_801
DAYS = 730
COUNTRIES = ("AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "PL", "PT", "SE")
SEGMENTS = ("consumer", "corporate", "public", "small office")
STATES = ("paid", "returned", "cancelled")

#: Order files, orders in each of them, and customers.
SHAPES = {"small": (8, 50_000, 10_000), "full": (40, 500_000, 400_000)}


def folder(settings: Settings) -> Path:
    """Where the files of that size are."""
    return settings.data / f"shop-{settings.size}-{SEED}"


def make(settings: Settings) -> None:
    """Writes the files, unless an earlier run did."""
    target = folder(settings)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside its place and moved there when whole, so that a run which is stopped, or
    # two at the same time, never leave half of the files.
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        _write(scratch, *SHAPES[settings.size])
        scratch.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(scratch: Path, files: int, rows: int, customers: int) -> None:
    for name in ("orders", "customers"):
        (scratch / name).mkdir()
    late = _orders(0, 0, customers)
    for part in range(files):
        table = _orders(part, rows, customers)
        # Exports overlap: each file repeats some orders of the one before.
        pq.write_table(pa.concat_tables([late, table]), scratch / f"orders/{part:03}.parquet")
        late = table.slice(rows - rows // 100)
    # In several files, so that the join cannot simply send one small table to every worker.
    for part, ids in enumerate(np.array_split(np.arange(customers, dtype="int32"), files // 4)):
        pq.write_table(_customers(part, ids), scratch / f"customers/{part:03}.parquet")


def _orders(part: int, rows: int, customers: int) -> pa.Table:
    rng = np.random.default_rng([SEED, part])
    return pa.table(
        {
            "order": np.arange(part * rows, (part + 1) * rows),
            # Squared: a few customers order much, most of them little.
            "customer": (customers * rng.random(rows) ** 2).astype("int32"),
            "day": rng.integers(DAYS, size=rows, dtype="int32"),
            "state": np.array(STATES)[np.searchsorted([0.9, 0.96], rng.random(rows))],
            "quantity": rng.integers(1, 9, size=rows, dtype="int32"),
            "cents": rng.integers(99, 50_000, size=rows, dtype="int64"),
        }
    )


def _customers(part: int, ids: np.ndarray[tuple[int], np.dtype[np.int32]]) -> pa.Table:
    rng = np.random.default_rng([SEED, part, 1])
    return pa.table(
        {
            "customer": ids,
            "country": rng.choice(COUNTRIES, size=len(ids)),
            "segment": rng.choice(SEGMENTS, size=len(ids)),
        }
    )


if __name__ == "__main__":
    SETTINGS = parsed(sys.argv[1:], __doc__)
    make(SETTINGS)
    print(folder(SETTINGS))
