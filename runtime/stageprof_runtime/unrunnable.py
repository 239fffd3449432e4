"""Tasks that no worker may run: how many a scheduler has, and what the first of them needs.

Looked at twice a second, beside what the scheduler does: its own hooks are not asked for that.
While there are some a sample "tasks.unrunnable" says how many; a mark "no worker fits" says why, as
"<prefix> TAB <resources that it needs> TAB <workers or hosts that it is to be on>".
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK, SAMPLE
from stageprof_runtime.probes.failure import LONG, part
from stageprof_runtime.ring import Ring

#: The names of sample and mark.
MANY: Final = "tasks.unrunnable"
WHY: Final = "no worker fits"
#: Different reasons that are told, at most.
MOST: Final = 20


class Unrunnable:
    """Tells one session of those of one scheduler."""

    def __init__(self, ring: Ring, scheduler: Any) -> None:
        self._ring = ring
        self._scheduler = scheduler
        self._many = 0
        self._told: set[str] = set()

    def tell(self) -> None:
        """Say how many there are, if there are or were some, and why."""
        before, self._many = self._many, len(self._scheduler.unrunnable)
        if self._many or before:
            self._ring.emit((SAMPLE, now_ns(), MANY, float(self._many)))
        # Without any worker no task has one that fits, whatever it needs.
        if self._many and self._scheduler.workers and len(self._told) < MOST:
            with contextlib.suppress(
                RuntimeError, StopIteration
            ):  # the scheduler goes on meanwhile
                self._explain(next(iter(self._scheduler.unrunnable)))

    def _explain(self, task: Any) -> None:
        needs = task.resource_restrictions or {}
        wants = sorted({*(task.worker_restrictions or ()), *(task.host_restrictions or ())})
        resources = ", ".join(f"{name}={amount:g}" for name, amount in sorted(needs.items()))
        said = "\t".join(map(part, (key_split(task.key), resources, ", ".join(wants)[:LONG])))
        if (needs or wants) and said not in self._told:
            self._told.add(said)
            self._ring.emit((MARK, now_ns(), WHY, said))
