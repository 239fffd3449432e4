"""Step `expr`: expressions being simplified, lowered and fused before they are handed over.

An `optimize()` may run a computation of its own (Parquet statistics): all of it is optimization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside, within
from stageprof_runtime.operations import operations, optimized
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.stage import STEP, Stage


def install(emit: Emit) -> Undo:
    """Time the outermost `optimize()` on each thread."""
    return replace(*place("expr.optimize"), lambda f: _optimize(emit, f))


def _optimize(emit: Emit, optimize: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.optimizing:
            return optimize(self, *args, **kwargs)
        before = operations(self)
        start, cpu = now_ns(), thread_ns()
        try:
            inside.optimizing = 1
            with within("client", Stage.OPTIMIZATION, STEP["expr"]):
                result = optimize(self, *args, **kwargs)
        finally:
            inside.optimizing = 0
            emit.span("client", STEP["expr"], start, now_ns(), type(self).__name__, cpu=cpu)
        optimized(emit, "client", STEP["expr"], before, result)
        return result

    return timed
