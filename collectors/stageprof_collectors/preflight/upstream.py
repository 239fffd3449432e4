"""Which layer makes the many chunks of another, before anything runs: up the graph from it."""

from __future__ import annotations

from typing import NamedTuple

from stageprof_collectors.findings.upstream import FEW
from stageprof_collectors.preflight.plan import Plan


class Source(NamedTuple):
    """A layer that makes chunks, and how many larger ones it cuts up for that (0: none)."""

    name: str
    cut: int


class Sources:
    """The sources of the layers of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[str, Source] = {}

    def of(self, name: str) -> Source:
        """Up from a layer, the way of most bytes, as long as there are about as many chunks."""
        way, at = dict[str, None](), name
        while at not in self._known and at not in way:
            way[at] = None
            above = self._above(at)
            if isinstance(above, Source):
                self._known[at] = above
            else:
                at = above
        found = self._known.get(at, Source(at, 0))
        self._known |= dict.fromkeys(way, found)
        return found

    def _above(self, name: str) -> str | Source:
        sizes, needs = self._plan.sizes, self._plan.needs.get(name, {})
        many = [need for need in needs if sizes.get(need, 0) * FEW > sizes.get(name, 0)]
        if not many:
            return Source(name, max((sizes.get(need, 0) for need in needs), default=0))
        return max(many, key=needs.__getitem__)
