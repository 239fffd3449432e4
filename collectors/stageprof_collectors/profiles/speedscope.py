"""A flame in the file format of speedscope (https://www.speedscope.app)."""

from __future__ import annotations

from typing import Any, Final

from stageprof_collectors.profiles.flame import Flame
from stageprof_collectors.profiles.nodes import Frame
from stageprof_collectors.text import safe
from stageprof_runtime.version import __version__

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_LIMIT: Final = 300


def speedscope(*flames: Flame, name: str = "stageprof") -> dict[str, Any]:
    """A file with a profile for each flame, as what `json.dump` takes.

    Each stack is one sample with its seconds. Samples stand in the order of their stacks, not of
    time, which sums over many processes have not.
    """
    numbers: dict[Frame, int] = {}
    profiles = [_profile(flame, numbers) for flame in flames]
    return {
        "$schema": SCHEMA,
        "exporter": f"stageprof {__version__}",
        "name": safe(name),
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(frame) for frame in numbers]},
        "profiles": profiles,
    }


def _profile(flame: Flame, numbers: dict[Frame, int]) -> dict[str, Any]:
    samples = [
        ([numbers.setdefault(frame, len(numbers)) for frame in stack], took.seconds)
        for stack, took in flame.stacks.items()
    ]
    samples.sort()
    return {
        "type": "sampled",
        "name": safe(flame.sides or "all stages"),
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(seconds for _, seconds in samples),
        "samples": [stack for stack, _ in samples],
        "weights": [seconds for _, seconds in samples],
    }


def _frame(frame: Frame) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": safe(frame.name, limit=_LIMIT)}
    if frame.file:
        shown |= {"file": safe(frame.file, limit=_LIMIT), "line": max(frame.line, 0)}
    return shown
