"""Steps `spill.write` and `spill.read`: a worker moving data to disk and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import within
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.stage import STEP, Stage


def install(emit: Emit) -> Undo:
    """Time each value that is written or read, pickling included."""
    return together(
        [
            replace(*place("spill.write"), lambda f: _timed(emit, STEP["spill.write"], f)),
            replace(*place("spill.read"), lambda f: _timed(emit, STEP["spill.read"], f)),
        ]
    )


def _timed(emit: Emit, step: int, function: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, key: Any, *value: Any) -> Any:
        with within("worker", Stage.EXECUTION):
            start = now_ns()
            try:
                return function(self, key, *value)
            finally:
                stop = now_ns()
                weight = self.weight_by_key.get(key)
                emit.span("worker", step, start, stop, "", getattr(weight, "disk", 0))

    return timed
