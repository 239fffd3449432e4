"""Keys that are asked for one by one, of a recording that came in many parts."""

from __future__ import annotations

import msgspec
import numpy as np

from spent import spent
from stageprof_collectors.storage.key import pack_keys
from stageprof_collectors.storage.keylist import KeyList


def listed(parts: int) -> KeyList:
    """Keys in so many parts of two, between which are parts of none."""
    keys = KeyList()
    for i in range(parts):
        keys.add(pack_keys([msgspec.msgpack.encode(f"{c}{i}") for c in "ab"]), 2)
        keys.add(pack_keys([]), 0)
    return keys


def seconds(parts: int) -> float:
    """Of the processor that asking for each part's first key takes."""
    keys = listed(parts)
    return spent(lambda: [keys.texts([i]) for i in range(0, 2 * parts, 2)])


def test_each_key_is_that_of_its_number() -> None:
    keys, numbers = listed(5), np.array([9, 0, 3, 3, 8, 2])
    assert keys.texts(numbers) == ["b4", "a0", "b1", "b1", "a4", "a1"]
    assert keys.texts([]) == []


def test_eight_times_the_parts_take_about_eight_times_as_long() -> None:
    """Not 64 times, as where each question looks at where all parts begin."""
    seconds(10)  # what is made once
    assert seconds(8_000) < 20 * seconds(1_000)
