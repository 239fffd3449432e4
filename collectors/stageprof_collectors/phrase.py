"""Phrases that headlines and fixes share: where something is, what it costs, what to call it."""

from __future__ import annotations

import keyword
import ntpath
from typing import TYPE_CHECKING

from stageprof_collectors.quantity import seconds

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def at(file: str, line: int) -> str:
    """A line of the user's as people write it: `etl.py:41`; "" if it is unknown."""
    return f"{ntpath.basename(file)}:{line}" if file and line else ""


def made_at(file: str, line: int, before: str = " at ") -> str:
    """The same after a word, or nothing."""
    where = at(file, line)
    return f"{before}{where}" if where else ""


def of_wall(cost_s: float, recording: Recording) -> str:
    """What something costs of the run: `6.1 s of 19.4 s`."""
    return f"{seconds(cost_s)} of {seconds(recording.wall)}"


def word(name: str, otherwise: str) -> str:
    """A name that can stand in printed code: the user's own if it is one, else another."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise
