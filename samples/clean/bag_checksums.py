"""Compress records and sum up their sizes: C code does the work, bags only carry it."""

from __future__ import annotations

import hashlib
import zlib

import dask.bag as db
import numpy as np
from distributed import Client, LocalCluster


def record(number: int) -> bytes:
    """A record of a few MB with some structure in it."""
    random = np.random.default_rng(number)
    return random.integers(0, 12, 1_500_000, dtype="uint8").tobytes()


def packed(data: bytes) -> tuple[int, str]:
    """Size when compressed, and a checksum."""
    return len(zlib.compress(data, 4)), hashlib.sha256(data).hexdigest()


def size_of(entry: tuple[int, str]) -> int:
    """The first part of an entry."""
    return entry[0]


def main(size: float = 1.0) -> None:
    """Bytes of all records when compressed."""
    numbers = db.from_sequence(range(int(96 * size)), npartitions=max(2, int(24 * size)))
    print(numbers.map(record).map(packed).map(size_of).sum().compute())


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
