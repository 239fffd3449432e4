"""A check: one rule of the catalogue, or one of its own, asked of a graph before it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.quantity import span
from stageprof_collectors.findings.rule import Limit, Limits

if TYPE_CHECKING:
    from stageprof_collectors.findings.finding import Finding
    from stageprof_collectors.preflight.plan import Plan

#: What cannot be known before a run: seconds that depend on the work of tasks.
NOT_KNOWN: Final = (math.nan, math.nan)
#: The page of what only a check says.
DOCUMENTATION: Final = "https://github.com/stageprof/stageprof/blob/main/docs/check.md"


@dataclass(frozen=True)
class Check:
    """One check; where a rule of the catalogue has its id, its settings are the rule's."""

    id: str
    find: Callable[[Plan, Limits], Iterable[Finding]]
    limits: Mapping[str, Limit] = field(default_factory=dict)


def about(seconds: tuple[float, float]) -> str:
    """A predicted duration in a sentence."""
    return f"about {span(*seconds)}"


def middle(interval: tuple[float, float]) -> float:
    """The one figure for what is known as an interval: equally many times from either end."""
    low, high = interval
    return math.sqrt(low * high) if low > 0 else high / 2
