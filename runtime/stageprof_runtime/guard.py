"""Guards around hooks: nothing leaves a hook, and a hook that costs too much is put away.

A guarded hook catches everything, `BaseException` included: out of a scheduler or worker hook
`CancelledError` or `SystemExit` loses the cluster. After `FAILURES` failures the hook is
disabled; over its time budget it is first sampled (one call in `STRIDE`), then disabled. What
happened is kept in `Watch` and shipped with every batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns

logger = logging.getLogger("stageprof")

#: Failures after which a hook is disabled.
FAILURES = 10
#: Share of the time since the guard began that one hook may use.
BUDGET = 0.02
#: A hook may always use this much, or short runs would trip over one unlucky call.
GRACE_NS = 100_000_000
#: One call in 16 is timed; reading the clock at each would double a hook's cost.
TIMED = 16
#: Of a hook over its budget, one call in 10 goes on.
STRIDE = 10


class Watch:
    """What is known of one hook: calls, estimated own time, failures, and whether it is off."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.failures = 0
        self.skipped = 0
        self.timed_ns = 0
        self.timed = 0
        self.sampled = False
        self.disabled = ""
        self.began = now_ns()

    @property
    def spent_ns(self) -> int:
        """Estimated time in the hook so far, from the calls that were timed."""
        done = self.calls - self.skipped
        return self.timed_ns * done // self.timed if self.timed else 0

    def failed(self, error: BaseException) -> None:
        """Count a failure; say so once, and disable the hook at the tenth."""
        self.failures += 1
        if self.failures == 1:
            logger.warning("stageprof: hook %s failed: %r (the run goes on)", self.name, error)
        if self.failures >= FAILURES and not self.disabled:
            self.disabled = f"failed {self.failures} times, last: {error!r}"[:200]

    def measured(self, ns: int) -> None:
        """Add one timed call, and fall back if the budget is gone."""
        self.timed += 1
        self.timed_ns += ns
        now = now_ns()
        if self.spent_ns < max(GRACE_NS, BUDGET * (now - self.began)):
            return
        if self.sampled:
            self.disabled = "over its time budget"
            return
        # Begin anew: what is sampled gets a chance of its own.
        self.sampled = True
        self.began, self.calls, self.skipped, self.timed, self.timed_ns = now, 0, 0, 0, 0


def guard(hook: Callable[..., None], watch: Watch) -> Callable[..., None]:
    """A hook that returns None, raises nothing and keeps within its budget."""

    def guarded(*args: Any, **kwargs: Any) -> None:
        if watch.disabled:
            return
        watch.calls = calls = watch.calls + 1
        if watch.sampled and calls % STRIDE:
            watch.skipped += 1
            return
        try:
            if calls % TIMED and not watch.sampled:
                hook(*args, **kwargs)
                return
            start = now_ns()
            hook(*args, **kwargs)
            watch.measured(now_ns() - start)
        except BaseException as error:  # see the module's docstring
            watch.failed(error)

    return guarded
