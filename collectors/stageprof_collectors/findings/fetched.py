"""Of which keys objects are the results, that a client had fetched and handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stageprof_runtime.event import SCATTERED

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def fetched(recording: Recording, *, scattered: bool) -> dict[tuple[int, int], str]:
    """The key by the place and the number of an object.

    Args:
        recording: of the run.
        scattered: those that were scattered, or else those that were in graphs.
    """
    table = recording.store.table("fetched")
    mine = (table["graph"] == SCATTERED) == scattered
    places, numbers = (table[name][mine].tolist() for name in ("place", "number"))
    keys = recording.store.keys(table["key"][mine])
    return dict(zip(zip(places, numbers, strict=True), keys, strict=True))
