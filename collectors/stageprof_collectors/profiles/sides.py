"""The looks of a recording from each side: at each stage, and for each task prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.profiles.flame import Flame, flame_of, rows_of
from stageprof_collectors.storage.columns import Ints
from stageprof_runtime.stage import STEPS, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stageprof_collectors.recording import Recording

#: Prefixes that are told apart; those with fewer seconds go together.
MOST: Final = 200
OTHERS: Final = "(other prefixes)"

_STAGES: Final = tuple(Stage)
_STAGE_OF: Final = np.array([_STAGES.index(stage) for stage, _ in STEPS])


class Side(NamedTuple):
    """What was seen at a stage for tasks of a prefix ("": not for tasks)."""

    stage: str
    prefix: str
    flame: Flame


def sides(
    recording: Recording, prefix: str | None = None, worker: str | None = None
) -> Iterator[Side]:
    """A flame for each stage and prefix, those of a stage together, the longest first.

    Raises:
        UsageError: there is no such prefix or worker.
    """
    rows = rows_of(recording, None, prefix, worker)
    table = recording.looked
    stage = _STAGE_OF[table["step"][rows]]
    which, inverse = np.unique(
        stage * (len(recording.store.strings) + 1) + table["name"][rows], return_inverse=True
    )
    ns = np.bincount(inverse, np.maximum(table["total"][rows], 0), len(which))
    parts = np.split(rows[np.argsort(inverse, kind="stable")], np.cumsum(np.bincount(inverse))[:-1])
    order = np.lexsort((-ns, which // (len(recording.store.strings) + 1)))
    yield from _told(recording, [parts[i] for i in order.tolist()] if len(rows) else [])


def _told(recording: Recording, parts: list[Ints]) -> Iterator[Side]:
    """The sides of groups of rows, each stage's beyond the first `MOST` as one."""
    table, strings = recording.looked, recording.store.strings
    seen: dict[int, int] = {}
    rest: dict[int, list[Ints]] = {}
    for rows in parts:
        stage = int(_STAGE_OF[table["step"][rows[0]]])
        seen[stage] = seen.get(stage, 0) + 1
        if seen[stage] > MOST:
            rest.setdefault(stage, []).append(rows)
            continue
        yield _side(recording, stage, strings[table["name"][rows[0]]], rows)
    for stage, others in rest.items():
        yield _side(recording, stage, OTHERS, np.concatenate(others))


def _side(recording: Recording, stage: int, prefix: str, rows: Ints) -> Side:
    name = ": ".join(filter(None, (_STAGES[stage], prefix)))
    return Side(str(_STAGES[stage]), prefix, flame_of(recording, rows, name))
