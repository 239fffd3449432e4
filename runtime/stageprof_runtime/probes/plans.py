"""What a computation reads and does not use, does again or may fuse, by its optimized plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.event import CHAIN, PART, UNFUSED, UNUSED
from stageprof_runtime.made import forget, noting
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.plan import chained, plan_of, unused
from stageprof_runtime.repeats import Repeats
from stageprof_runtime.unfused import unfused


def install(emit: Emit) -> Undo:
    """Look through what the outermost `optimize()` on each thread returns."""
    with noting(emit) as lines:
        repeats = Repeats(lines.origin_of)
        undo = replace(*place("expr.optimize"), lambda f: _optimize(emit, f, repeats))
        return together([forget, undo])


def _optimize(emit: Emit, optimize: Callable[..., Any], repeats: Repeats) -> Callable[..., Any]:
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = optimize(self, *args, **kwargs)
        if not inside.optimizing:
            t, plan = now_ns(), plan_of(result)
            for row in unused(plan):
                emit.row("client", (UNUSED, t, *row))
            for link in chained(plan):
                emit.row("client", (CHAIN, t, *link))
            for left in unfused(plan):
                emit.row("client", (UNFUSED, t, *left))
            for part in repeats.of(t, plan):
                emit.row("client", (PART, *part))
        return result

    return seen
