"""How noisy is each sensor? Median and spread per sensor, of readings stored by time.

The readings come as one chunk per stretch of time, over all sensors. A median needs all of a
sensor's readings at once: every chunk is cut up and put together the other way round.
"""

from __future__ import annotations

import sys

import dask.array as da
import numpy as np

from program import Row, Settings, main

SEED = 1971

#: Readings of each sensor, sensors, and readings in a stored chunk.
SHAPES = {"small": (20_000, 600, 1_000), "full": (120_000, 4_000, 3_000)}

#: Beyond so many spreads from its median, a reading is taken for a fault.
FAULT = 3.5


def run(settings: Settings) -> list[Row]:
    """Rows of sensor, its median, its spread and its number of faults."""
    readings = measured(*SHAPES[settings.size])
    by_sensor = readings.rechunk({0: -1, 1: "auto"}, block_size_limit=32_000_000)
    table = summary(by_sensor).compute()
    return [(i, float(mid), float(spread), int(n)) for i, (mid, spread, n) in enumerate(table.T)]


def measured(count: int, sensors: int, stretch: int) -> da.Array:
    """The readings as stored: noise on a level of each sensor's own, in chunks by time."""
    rng = da.random.default_rng(SEED)
    noise = rng.standard_normal((count, sensors), chunks=(stretch, sensors))
    level = np.linspace(10.0, 90.0, sensors)
    readings: da.Array = (level + noise * (1 + level / 50)).astype("float32")
    return readings


def summary(by_sensor: da.Array) -> da.Array:
    """Three lines, one column per sensor: median, spread, number of faults."""
    middle = da.median(by_sensor, axis=0)
    deviation = abs(by_sensor - middle)
    # 1.4826 makes it a standard deviation, were the noise normal.
    spread = 1.4826 * da.median(deviation, axis=0)
    faults = (deviation > FAULT * spread).sum(axis=0)
    table: da.Array = da.stack([middle, spread, faults])
    return table


if __name__ == "__main__":
    sys.exit(main("rechunk", __doc__, run))
