"""What the program itself imports: it does so without a cluster, and at its top, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stageprof_runtime.stage import IMPORT, Stage

if TYPE_CHECKING:
    from stageprof_collectors.account.path import Step
    from stageprof_collectors.recording import Recording

#: The role of the process that a program is.
PROGRAM: Final = "client"
_IMPORTS: Final = frozenset(IMPORT.values())


def whole(recording: Recording) -> bool:
    """Whether a recording is of a whole program, so that no import can go before it."""
    return recording.store.header.get("whole") is True


def imported(recording: Recording, step: Step) -> bool:
    """Whether a step of the critical path is an import of the program itself."""
    mine = recording.store.places[step.what.place].role == PROGRAM
    return step.what.step in _IMPORTS and mine


def imported_s(recording: Recording, stage: Stage) -> float:
    """Seconds of the critical path that it imported in a stage."""
    steps = (s for s in recording.path_steps if s.what.step == IMPORT[stage])
    return sum(s.stop - s.start for s in steps if imported(recording, s)) / 1e9
