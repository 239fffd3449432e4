"""A thread under a profile function of Python's keeps its variables while others look at it."""

from __future__ import annotations

import sys
import threading
from types import FrameType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

from stageprof_runtime.made import forget, noting
from stageprof_runtime.probes.layers import line_of_rewriting


class Rewriting(threading.Thread):
    """Rewrites an expression; its profile function is being called when `reached` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.frame: FrameType | None = None
        self.kept: Any = None

    def run(self) -> None:
        sys.setprofile(self._profile)
        self.kept = _lower(SimpleNamespace(_name="sum-1a2b"))
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is _lower.__code__ and event == "c_call":
            self.frame = frame
            self.reached.set()
            self.go_on.wait(60)


def _lower(self: Any) -> Any:  # the name of a method by which Dask rewrites an expression
    local = "kept"
    len(local)
    return self, local


def test_a_look_takes_nothing_from_a_thread_whose_profile_function_is_called() -> None:
    """CPython writes the thread's variables back when that returns, from the dict that we read."""
    thread = Rewriting()
    with noting(Mock()) as lines:
        lines.made("sum-1a2b", ("etl.py", 7))
        thread.start()
        assert thread.reached.wait(60)
        line = line_of_rewriting(thread.frame)
        thread.frame = None
        thread.go_on.set()
        thread.join()
        forget()

    assert line == ("etl.py", 7)
    assert thread.kept[1] == "kept"
