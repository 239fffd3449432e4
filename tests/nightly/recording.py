"""A pytest plugin: tests of somebody else's run with a recording on, or with it off.

Loaded with `-p recording` by `dasks_own`; what it shall do is in the environment, for the command
line belongs to the tests. It changes nothing that a test could see but that it is recorded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import stageprof

#: How much is one recording: "test" or "session"; "" for none.
ROUND: Final = "STAGEPROF_RECORD_ROUND"
#: The file that the outcomes are written to.
OUTCOMES: Final = "STAGEPROF_OUTCOMES"


class Recorder:
    """Records, and keeps how each test ended."""

    def __init__(self, each: str, path: Path) -> None:
        self._each = each
        self._path = path
        self._session: Any = None
        #: test -> "passed", "failed", "skipped", "xfailed", "xpassed", or "error" of a fixture
        self._ended: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._recordings = self._events = 0
        self._disabled: set[str] = set()

    def pytest_sessionstart(self) -> None:
        if self._each == "session":
            self._session = stageprof.profile(self._path.with_suffix(".stageprof")).start()

    def pytest_sessionfinish(self) -> None:
        if self._session is not None:
            self._count(self._session.stop())
        said = {
            "ended": self._ended,
            "why": self._why,
            "recordings": self._recordings,
            "events": self._events,
            "disabled": sorted(self._disabled),
        }
        self._path.write_text(json.dumps(said))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        if self._each != "test":
            return (yield)
        # Watching the GIL starts a process for each recording: once a session is enough.
        region = stageprof.profile(gil=False)
        try:
            with region:
                return (yield)
        finally:
            self._count(region.recording)

    def _count(self, recording: Any) -> None:
        coverage = recording.coverage()
        self._recordings += 1
        self._events += coverage["events"]
        self._disabled |= set(map(str, coverage["disabled"]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ended: str = report.outcome if report.when == "call" or report.skipped else ""
        if report.failed and report.when != "call":
            ended = "error"
        if hasattr(report, "wasxfail"):
            ended = "xfailed" if report.skipped else "xpassed"
        if ended:
            self._ended[report.nodeid] = ended
        if report.failed:
            self._why[report.nodeid] = report.longreprtext[-3000:]


def pytest_configure(config: pytest.Config) -> None:
    """Ready, if it was asked for."""
    path = os.environ.get(OUTCOMES)
    if path:
        config.pluginmanager.register(Recorder(os.environ.get(ROUND, ""), Path(path)))
