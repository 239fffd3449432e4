"""A rule: its limits, and the function that turns a recording into findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.findings.finding import Finding
    from stageprof_collectors.recording import Recording

#: Values of a rule's limits by name, as they are set for this diagnosis.
Limits = Mapping[str, float]


class Ground(StrEnum):
    """What a predicted saving rests on, which says how far it may be off; see `margin`."""

    #: seconds that were recorded would be gone
    RECORDED = "recorded"
    #: a part of the tasks' own time would be gone: how large a part is a guess
    REWRITTEN = "rewritten"
    #: the same work would be done by more threads or workers, or by others
    SPREAD = "spread"
    #: a scheduler, a loop or a memory would be less busy, which all that runs beside it feels
    CROWDED = "crowded"


@dataclass(frozen=True)
class Limit:
    """A threshold of a rule, which the user may set."""

    default: float
    #: why it is not lower or higher
    reason: str


@dataclass(frozen=True)
class Rule:
    """One entry of the catalogue; `docs/findings.md` has a section for each."""

    #: as in the catalogue: lower case with hyphens
    id: str
    #: the stage that it is about; None for several
    stage: Stage | None
    #: one sentence: when it fires
    summary: str
    #: pure: the same recording and limits give the same findings, in any order
    find: Callable[[Recording, Limits], Iterable[Finding]]
    limits: Mapping[str, Limit] = field(default_factory=dict)
    #: ids of rules that say the same in more general words: of one cause, this rule's finding is
    #: shown instead of theirs where it saves about as much
    instead_of: frozenset[str] = frozenset()
    #: what its savings rest on; None: their intervals are shown as they are
    ground: Ground | None = None
