"""Stacks and recordings of stacks made by hand, in which every second is known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import CALLED, FLAME, MARK, NODE, Place
from stageprof_runtime.stage import OUTSIDE, STEP
from stageprof_runtime.stem import frames_of

CLIENT = Place("client", "laptop", 1, "Client-1", 1)
SECOND = 1_000_000_000

#: Texts that somebody could put into a recording, and that no page may act on.
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script><!--",
    "{{ 7 * 7 }} {% raw 1 %} <%= 7 * 7 %>",
    "\u202egnp.exe\x1b[31m\x00\x01",
    "a;b c\nd",
    "x" * 100_000,
)


def stack_through(*calls: tuple[str, str]) -> list[FrameType]:
    """The frames, innermost first, of functions of these names in these files, outermost first.

    Frames of the test itself are left out.
    """
    found: list[FrameType] = []

    def innermost() -> None:
        found.extend(frames_of(sys._getframe(1))[: len(calls)])

    function: Callable[[], None] = innermost
    for name, file in reversed(calls):
        function = _calling(name, file, function)
    function()
    return found


def _calling(name: str, file: str, inner: Callable[[], None]) -> Callable[[], None]:
    scope: dict[str, Any] = {"called_": inner}
    exec(compile(f"def {name}():\n    called_()\n", file, "exec"), scope)
    made: Callable[[], None] = scope[name]
    return made


class Seen:
    """Collects looks as the places of a cluster tell of them."""

    def __init__(self) -> None:
        self._rows: dict[Place, list[tuple[Any, ...]]] = {CLIENT: []}
        self._nodes: dict[Place, dict[tuple[str, ...], int]] = {}

    def worker(self, number: int) -> Place:
        """A worker, known to the scheduler."""
        place = Place("worker", "host", 10 + number, f"tcp://host:{10 + number}", 1)
        self._rows.setdefault(place, [])
        return place

    def look(
        self,
        stack: Sequence[str],
        seconds: float,
        *,
        step: str = "build",
        prefix: str = "",
        how: str = "python",
        place: Place = CLIENT,
        looks: int = 1,
    ) -> None:
        """A place saw functions ("name file:line", the outermost first) for so long."""
        node = self._node(place, tuple(stack))
        code = OUTSIDE if step == "outside" else STEP[step]
        row = (FLAME, 1, code, prefix, how, node, looks, round(seconds * SECOND))
        self._rows.setdefault(place, []).append(row)

    def row(self, *row: Any, place: Place = CLIENT) -> None:
        """Any row whatever."""
        self._rows.setdefault(place, []).append(row)

    def call(
        self, name: str, by: str, own: float, total: float, *, calls: int = 1, step: str = "build"
    ) -> None:
        """`name` was called by `by` ("": by nobody that was seen)."""
        caller = (by, "/u/etl.py", 2) if by else ("", "", 0)
        figures = calls, calls, round(own * SECOND), round(total * SECOND)
        self.row(CALLED, STEP[step], name, "/u/etl.py", 1, *caller, *figures)

    def _node(self, place: Place, stack: tuple[str, ...]) -> int:
        known = self._nodes.setdefault(place, {})
        if stack in known:
            return known[stack]
        parent = self._node(place, stack[:-1]) if len(stack) > 1 else -1
        name, _, where = stack[-1].rpartition(" ")
        file, _, line = where.rpartition(":")
        number = known[stack] = len(known)
        self._rows.setdefault(place, []).append((NODE, number, parent, name, file, int(line)))
        return number

    def recording(self) -> Recording:
        """The recording of a region of ten seconds."""
        start, stop = (MARK, 1, "region start", "7 7"), (MARK, 10 * SECOND, "region stop", "7")
        store = Store({"label": "etl.py"})
        for place, rows in self._rows.items():
            own = [start, *rows, stop] if place == CLIENT else rows
            store.add(pack(place, 0, 10 * SECOND, own))
        store.complete = True
        return Recording(store)
