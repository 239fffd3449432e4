"""Folded stacks for flamegraph.pl and its relatives: `stage;prefix;frames microseconds`."""

from __future__ import annotations

from pathlib import Path

from stageprof.recording import Recording
from stageprof_collectors.profiles.folded import collapsed
from stageprof_collectors.profiles.session import looked
from stageprof_collectors.profiles.sides import sides


def write(recording: Recording, path: Path) -> None:
    """Write the file.

    Raises:
        NoLooks: the recording has none.
    """
    looked(recording, None)
    with path.open("w", encoding="utf-8") as out:
        for side in sides(recording):
            out.write(collapsed(side.flame, *filter(None, (side.stage, side.prefix))))
