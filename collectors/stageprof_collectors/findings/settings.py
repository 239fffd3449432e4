"""What a diagnosis goes by: rules that are off, limits that differ, where severities begin.

Data only. Whoever asks for a diagnosis makes it from what the user set, and answers for its
names and values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stageprof_collectors.findings.finding import SHARES, Severity
from stageprof_collectors.findings.rule import Rule


@dataclass(frozen=True)
class Settings:
    """How recordings are diagnosed; two with the same content are equal, and can be keys."""

    #: ids of the rules that are switched off
    off: frozenset[str] = frozenset()
    #: (rule, limit, value) where the value is not the rule's own
    limits: frozenset[tuple[str, str, float]] = frozenset()
    #: the shares of wall time from which these severities begin; below the last it is a note
    critical: float = SHARES[Severity.CRITICAL]
    serious: float = SHARES[Severity.SERIOUS]
    moderate: float = SHARES[Severity.MODERATE]

    def of(self, rule: Rule) -> dict[str, float]:
        """The value of each limit of a rule."""
        own = {name: limit.default for name, limit in rule.limits.items()}
        return own | {name: value for id_, name, value in self.limits if id_ == rule.id}

    @property
    def shares(self) -> dict[Severity, float]:
        """As `finding.SHARES`."""
        return {
            Severity.CRITICAL: self.critical,
            Severity.SERIOUS: self.serious,
            Severity.MODERATE: self.moderate,
        }


#: What holds where nobody set anything.
DEFAULTS: Final = Settings()
