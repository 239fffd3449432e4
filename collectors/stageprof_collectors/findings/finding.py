"""A finding: a cause of slowness, what it costs, and a fix with the seconds that it saves.

Data only; rules make it and faces show it. Texts may hold what came from the recording, which
the faces make safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from stageprof_runtime.stage import Stage


class Severity(StrEnum):
    """How much of the wall time acting on a finding would save, gravest first."""

    CRITICAL = "critical"
    SERIOUS = "serious"
    MODERATE = "moderate"
    NOTE = "note"


def at_least(one: Severity, other: Severity) -> bool:
    """Whether one is as grave as another, or graver."""
    order = list(Severity)
    return order.index(one) <= order.index(other)


#: The share of wall time from which each severity begins; below the last one it is a note.
SHARES: Final = {Severity.CRITICAL: 0.30, Severity.SERIOUS: 0.10, Severity.MODERATE: 0.03}

#: Seconds; what saves less is a note whatever its share: nobody notices a twentieth of a second,
#: and two runs of one program differ by as much.
LEAST_S: Final = 0.05

#: Where `link` points to; a rule's section has its id as its anchor.
DOCUMENTATION: Final = "https://github.com/stageprof/stageprof/blob/main/docs/findings.md"


def severity(
    saving_s: tuple[float, float], wall_s: float, shares: Mapping[Severity, float] = SHARES
) -> Severity:
    """By the share of the wall time that the middle of the saving is, if it is `LEAST_S` or more.

    The saving, not the cost: what cannot be gained by acting is no reason for alarm.
    """
    middle = sum(saving_s) / 2
    if middle < LEAST_S:
        return Severity.NOTE
    share = middle / wall_s if wall_s > 0 else 0.0
    return next((s for s, least in shares.items() if share >= least), Severity.NOTE)


@dataclass(frozen=True)
class Where:
    """What of the user's program a finding is about; empty fields are unknown."""

    #: the user's file and line
    file: str = ""
    line: int = 0
    #: the name that the user's code has for the object
    variable: str = ""
    #: the layer, and the prefix of its tasks' keys
    layer: str = ""
    prefix: str = ""


@dataclass(frozen=True)
class Fix:
    """What to do: in words, and as code that runs as printed."""

    text: str
    code: str = ""


@dataclass(frozen=True)
class Finding:
    """One cause, found by one rule."""

    #: the rule's id, as in docs/findings.md
    rule: str
    #: by the share of wall time that acting would save
    severity: Severity
    #: one line in plain words
    headline: str
    #: the stage that it belongs to; None if to several
    stage: Stage | None
    #: named numbers (and names) that show it; `_s` are seconds, `_bytes` bytes
    evidence: Mapping[str, float | int | str]
    #: seconds of the blocking account that it costs
    cost_s: float
    #: seconds that the fix would save, at least and at most
    saving_s: tuple[float, float]
    fix: Fix
    where: Where = field(default_factory=Where)
    #: findings of one run with the same cause are shown as one: the best of them
    cause: str = ""
    #: other causes that its fix does away with: what was found of them is not shown besides
    also: frozenset[str] = frozenset()
    #: the page with its rule's section; a rule of another package names its own
    documentation: str = DOCUMENTATION

    @property
    def link(self) -> str:
        """Its rule's section in the documentation."""
        return f"{self.documentation}#{self.rule}"
