"""A cluster that is being recorded while pages show it.

Nothing is asked of the cluster beside what recording does: all is read off what it sends.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stage import step_name
from stageprof_ui.columns.growth import Growth
from stageprof_ui.columns.library import SUFFIX
from stageprof_ui.columns.running import Now
from stageprof_ui.store import Store

#: Seconds between two looks at what came in.
PERIOD_S: Final = 0.5
#: Snapshots are made so seldom that they take a tenth of a core, and never more often than this.
SHARE: Final = 0.1
LEAST_S: Final = 3.0
#: What may be saved under: no path, nothing hidden, nothing that a shell or a terminal acts on.
_NAME: Final = re.compile(r"[^\W_][\w .+=@-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Snapshot:
    """The recording as it was, with what its pages are made from."""

    store: Store
    #: seconds since 1970
    at: float
    #: which one of its run, from 1: who only compares need not keep a recording for it
    number: int
    #: whether it is the last one, made when the run had ended
    final: bool = False


#: What is said of a time line that goes no further, or has not all; the other pages do.
_FULL: Final = "the live time line ends after twelve hours; the other pages show all"
_CROWDED: Final = "overlapped too many others to have a row in the live time line"
_UNTIMED: Final = "tasks are missing in the live time line until clocks can be compared"


class Run:
    """The cluster, from `with` to its end.

    Args:
        collector: records it, in memory and savable.
        alive: whether the cluster is still there.
        lost: whether, if not, it is only that it cannot be reached.
        end: stops recording; everything is in the collector when it returns.
        folder: where recordings are saved.
        settings: of the diagnosis.
    """

    def __init__(
        self,
        collector: Collector,
        *,
        alive: Callable[[], bool],
        lost: Callable[[], bool] = lambda: False,
        end: Callable[[], object],
        folder: str | os.PathLike[str] = ".",
        settings: Settings = DEFAULTS,
    ) -> None:
        self.growth = Growth()
        #: "recording", "stopping", "stopped", "gone" (the cluster), "lost" (the connection to it)
        self.state = "recording"
        #: the name under which it was saved last
        self.saved = ""
        self._saved_at = 0.0
        #: what the heavier pages show; None until there is something
        self.latest: Snapshot | None = None
        #: what is wrong: with the end, with the time line, with the latest try of a snapshot
        self._unended = self._gap = self._unmade = ""
        self._collector, self._alive, self._lost, self._end = collector, alive, lost, end
        self._folder, self._settings = Path(folder).absolute(), settings
        self._began, self._ended = time.monotonic(), 0.0
        self._asked, self._leaving = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=job, name=f"stageprof-{name}", daemon=True)
            for name, job in (("follow", self._follow), ("pages", self._snapshots))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._asked.set()
        for thread in self._threads:
            thread.join()

    @property
    def label(self) -> str:
        """What is recorded."""
        return str(self._collector.growing.header.get("label") or "")

    @property
    def running(self) -> bool:
        """Whether it is still being recorded."""
        return self.state in ("recording", "stopping")

    @property
    def failed(self) -> str:
        """That what comes is not kept any more, and why; "" if it is."""
        why = self._collector.failed
        return f"nothing more is kept: {why}" if why else ""

    @property
    def trouble(self) -> str:
        """What is wrong, "" if nothing is; what was lost is said until the end."""
        all_ = (self.failed, self._unended, self._gap, self._unmade, *self._missing())
        # each is cut by itself, so that a long one does not hide the others
        return "; ".join(safe(one, limit=300) for one in all_ if one)

    def _missing(self) -> tuple[str, ...]:
        """What the time line does not have, "" for what it has."""
        growth = self.growth
        crowded = f"{count(growth.crowded, 'task')} {_CROWDED}" if growth.crowded else ""
        return _FULL * growth.full, crowded, _UNTIMED * growth.untimed

    @property
    def now(self) -> list[Now]:
        """Tasks that are taken to run, the oldest first; none once nothing more is heard."""
        return self.growth.now if self.running else []

    def stop(self) -> None:
        """Record no more; returns at once, and `state` says when it is so."""
        if self.state == "recording":
            self.state = "stopping"
        self._asked.set()

    def save(self, name: str) -> str:
        """Write what was recorded until now beside where the command was started.

        Returns:
            The name of the file.

        Raises:
            UsageError: that is no name for a file.
            RecordingNotWritable: there is one already, or it cannot be written.
        """
        stem = name.strip().removesuffix(SUFFIX)
        if not _NAME.fullmatch(stem):
            raise UsageError(
                f"{safe(name)!r} cannot be the name of a recording",
                expected="letters, digits, blanks and . _ + = @ -, beginning with one of the first",
                do="choose another",
            )
        self._collector.save(self._folder / f"{stem}{SUFFIX}")
        self.saved, self._saved_at = f"{stem}{SUFFIX}", time.monotonic()
        return self.saved

    @property
    def unsaved_s(self) -> float:
        """Seconds that were recorded since it was saved last."""
        return max(0.0, (self._ended or time.monotonic()) - (self._saved_at or self._began))

    def status(self) -> dict[str, Any]:
        """How far the cluster is now, in words and numbers that are safe to show."""
        live = self._collector.live
        known, assigned, done = live.tasks
        return {
            "state": "failed" if self.failed and self.state == "recording" else self.state,
            "stage": str(live.stage) if self.running else "",
            "steps": _steps(dict(live.now)) if self.running else [],
            "known": known,
            "assigned": assigned,
            "done": done,
            "elapsed": (self._ended or time.monotonic()) - self._began,
            "end": self.growth.end / 1e9,
            "trouble": self.trouble,
        }

    # -- in threads of their own ------------------------------------------------------------

    def _follow(self) -> None:
        while not self._asked.wait(PERIOD_S):
            self._look()
            if not self._alive():
                break
        state = self._ending()
        try:
            self._end()
        except Exception as error:  # the cluster may be in any state
            said = str(error) or type(error).__name__
            self._unended = f"recording did not end in good order ({said})"
        self._look()
        self._ended = time.monotonic()
        self.state = state

    def _ending(self) -> str:
        """The state that this ends in; asked before the connection is closed."""
        if self._alive():
            return "stopped"
        return "lost" if self._lost() else "gone"

    def _look(self) -> None:
        try:
            with self._collector.lock:
                self.growth.look(self._collector.growing)
        except Exception as error:  # whatever was sent, recording goes on
            self._gap = f"the time line has a gap ({type(error).__name__}: {error})"

    def _snapshots(self) -> None:
        seen, pause = (-1, True, ""), PERIOD_S
        while not self._leaving.wait(pause):
            running = self.running
            now = self._collector.growing.batches, running, self.failed
            if now == seen:
                pause = PERIOD_S
                continue
            seen, took = now, self._snapshot()
            # the last one, of the whole recording, is worth its price
            pause = max(LEAST_S, took / SHARE - took) if running else PERIOD_S

    def _snapshot(self) -> float:
        """Make the latest; the CPU seconds that it took."""
        began, at, final = time.thread_time(), time.time(), not self.running
        try:
            store = Store(self._collector.snapshot(), self._settings, sources=True)
            if len(store.boxes):
                store.prepare()
                number = self.latest.number + 1 if self.latest else 1
                self.latest = Snapshot(store, at, number, final)
            self._unmade = ""
        except Exception as error:  # half of a run may make no sense yet; the next may
            self._unmade = f"pages cannot be made now ({type(error).__name__}: {error})"
        return time.thread_time() - began


def _steps(now: dict[str, int]) -> list[tuple[str, str]]:
    """The step that each role is in, and at how many of its places."""
    found: dict[tuple[str, str], int] = {}
    for place, step in now.items():
        if step:
            at = (place.partition(" ")[0], step_name(step))
            found[at] = found.get(at, 0) + 1
    return [(role if n == 1 else f"{n} {role}s", step) for (role, step), n in sorted(found.items())]
