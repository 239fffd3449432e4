"""The looks at the region's thread as a session of pyinstrument, for its renderers.

Its constructor is not documented; it was tried with pyinstrument 5.0 and 5.1.
"""

from __future__ import annotations

import sys
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from stageprof_collectors.findings.quantity import count
from stageprof_collectors.profiles.flame import Flame
from stageprof_collectors.profiles.nodes import Frame
from stageprof_collectors.text import safe
from stageprof_runtime.errors import RecordingError
from stageprof_runtime.stage import STEPS

if TYPE_CHECKING:
    from pyinstrument.session import Session

    from stageprof_collectors.recording import Recording

_LIMIT = 300


class NoLooks(RecordingError):
    """The recording has no look at what was asked for."""


def session(recording: Recording, stage: str) -> Session:
    """What was seen at a stage, outermost frames first; see `Recording.profile`."""
    from pyinstrument.session import Session

    flame = looked(recording, stage)
    text = cache(_frame)  # a frame is on many stacks
    records = sorted(
        ([text(frame) for frame in stack], took.seconds) for stack, took in flame.stacks.items()
    )
    looks = max(int(flame.looks.sum()), 1)
    every = flame.seconds / looks
    return Session(
        frame_records=records,
        start_time=_started(recording),
        duration=flame.seconds,
        min_interval=every,
        max_interval=every,
        sample_count=looks,
        start_call_stack=["(before the region)\x00\x000"],
        target_description=f"stageprof: {safe(stage)}, {count(looks, 'look')}",
        cpu_time=float(flame.own[:2].sum()),
        sys_path=list(sys.path),
        sys_prefixes=Session.current_sys_prefixes(),
    )


def _started(recording: Recording) -> float:
    """When the recording began, seconds since 1970; 0 if that cannot be told."""
    try:
        return datetime.fromisoformat(recording.store.header["started"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


def looked(recording: Recording, stage: str | None) -> Flame:
    """The flame of a stage; None is all of them.

    Raises:
        NoLooks: nothing was seen there.
        UsageError: there is no such stage.
    """
    flame = recording.flame(stage)
    if not flame:
        raise NoLooks(
            f"the recording has no look at {f'the stage {stage}' if stage else 'any stack'}",
            expected="a stage that took some tenths of a second (seen: " + _stages(recording) + ")",
            do="choose one that was seen, or record again",
        )
    return flame


def _stages(recording: Recording) -> str:
    steps = set(recording.store.table("flame")["step"].tolist())
    stages = dict.fromkeys(str(of) for code, (of, _) in enumerate(STEPS) if code in steps)
    return ", ".join(stages) or "none"


def _frame(frame: Frame) -> str:
    """A frame as pyinstrument writes one: name, file and line, and the line that was running."""
    name, file = (_inert(text) for text in (frame.name, frame.file))
    line = max(frame.line, 0)
    return f"{name}\x00{file}\x00{line}\x01l{line}"


def _inert(text: str) -> str:
    """Its HTML page holds names inside a script: no name may end that, or begin a comment."""
    return safe(text, limit=_LIMIT).replace("</", "< /").replace("<!", "< !")
