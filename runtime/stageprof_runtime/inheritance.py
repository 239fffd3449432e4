"""What workers that are gone have left in their tails, as the batches that it would have been."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack

from stageprof_runtime import locked
from stageprof_runtime.batch import pack_sound
from stageprof_runtime.event import Place
from stageprof_runtime.tail import ALL, KEPT, folder_of


def inherited(session: str) -> list[bytes]:
    """The batches that workers of this host which are gone have left, and no longer are there."""
    try:
        folder = folder_of(session)
    except OSError:
        return []
    found: list[bytes] = []
    for left in _orphans(folder):
        with contextlib.suppress(Exception):  # one that makes no sense takes none of the others'
            found += _batches(left)
    return found


def _orphans(folder: str) -> Iterator[bytes]:
    """What is in the files whose owners are gone; each is given to one who asks."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:  # the last of the others took it away just then
        return
    for entry in entries:
        if entry.name.endswith(KEPT):
            with locked.orphan(entry.path) as file:
                if file >= 0:
                    os.unlink(entry.path)
                    yield os.pread(file, ALL, 0)


def _batches(left: bytes) -> list[bytes]:
    """The batches that a file holds: those before, and the one that would have come next."""
    head, *parts = _unpacked(left) or [None]
    if head is None:
        return []
    place, seq, drops, cost, now, counts, before = head
    before = [*before, *(b for part in parts if _carries(part) for b in part)]
    looks = [part for part in parts if not _carries(part)]
    if not looks:
        return before
    sums = [some for _, _, some in looks if some]
    rows = [row for _, some, _ in looks for row in some] + list(sums[-1] if sums else ())
    cost = {name: list(spent) for name, spent in cost.items()}
    told = {"cost": cost, "now": now, "counts": counts}
    batch, _ = pack_sound(Place(*place), seq, looks[-1][0], rows, drops, **told)
    return [*before, batch]


def _carries(part: Sequence[Any]) -> bool:
    """Whether an object is batches of others, and no look."""
    return isinstance(part[0], bytes)


def _unpacked(left: bytes) -> list[Any]:
    """The objects of a file, up to one that was not written to its end."""
    unpacker = msgpack.Unpacker(
        use_list=False, strict_map_key=False, unicode_errors="surrogatepass", max_buffer_size=0
    )
    unpacker.feed(left)
    found: list[Any] = []
    with contextlib.suppress(ValueError, msgpack.UnpackException):
        found.extend(unpacker)
    return found
