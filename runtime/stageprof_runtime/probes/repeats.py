"""What a computation does again: its optimized plan is compared with those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.event import PART
from stageprof_runtime.made import forget, noting
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.repeats import Repeats


def install(emit: Emit) -> Undo:
    """Look through what the outermost `optimize()` on each thread returns."""
    with noting(emit) as lines:
        repeats = Repeats(lines.origin_of)
        undo = replace(*place("expr.optimize"), lambda f: _optimize(emit, f, repeats))
        return together([forget, undo])


def _optimize(emit: Emit, optimize: Callable[..., Any], repeats: Repeats) -> Callable[..., Any]:
    def compared(self: Any, *args: Any, **kwargs: Any) -> Any:
        plan = optimize(self, *args, **kwargs)
        if not inside.optimizing:
            for part in repeats.of(now_ns(), plan):
                emit.row("client", (PART, *part))
        return plan

    return compared
