"""A JSON file for speedscope: the looks of all stages, of each, and of each task prefix."""

from __future__ import annotations

import json
from pathlib import Path

from stageprof.recording import Recording
from stageprof_collectors.profiles.session import looked
from stageprof_collectors.profiles.sides import sides
from stageprof_collectors.profiles.speedscope import speedscope


def write(recording: Recording, path: Path) -> None:
    """Write the file; weights are seconds.

    Raises:
        NoLooks: the recording has none.
    """
    flames = [looked(recording, None), *(side.flame for side in sides(recording))]
    made = speedscope(*flames, name=str(recording.store.header.get("label", "stageprof")))
    path.write_text(json.dumps(made, allow_nan=False), "utf-8")
