"""The hooks around each recorded test: record it, judge it, tell what was seen."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from stageprof.private import make_folders
from stageprof.testing import message
from stageprof.testing.judgement import exceeded
from stageprof.testing.limits import Limits, limits
from stageprof.testing.message import Verdict
from stageprof.testing.recorder import RECORDER, Calls, Recorder, recorded
from stageprof.testing.seen import Seen, seen
from stageprof.testing.table import Row, lost, row
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

#: A test records blocks by itself, through the fixture.
_FIXTURE: Final = "stageprof_recorder"


class Course:
    """A test on its way: its limits, its recorder, and what was seen so far.

    Args:
        limits: by which it is judged.
        recorder: what records it.
        whole: whether each call of the test is recorded; else the test records blocks.
    """

    def __init__(self, limits: Limits, recorder: Recorder, *, whole: bool) -> None:
        self.limits = limits
        self.recorder = recorder
        self.whole = whole
        #: by block
        self.seen: dict[str, list[Seen]] = {}
        self.over: list[Verdict] = []

    def look(self) -> None:
        """Take what limits are judged by from blocks that have ended since; never raises."""
        for name, recording in self.recorder.fresh():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = seen(recording, self.limits)
                self.seen.setdefault(name, []).append(found)
                if not recording.complete:  # what is missing took time, too
                    self.recorder.problem = recording.store.incomplete_reason
            except Exception as error:  # the test must not fail for what we do
                self.recorder.problem = f"{type(error).__name__}: {error}"
        if self.whole:
            self.recorder.forget()

    def judge(self) -> str:
        """Why the test fails; "" if it does not."""
        if not self.limits.any:
            return ""
        reason = self.recorder.problem or ("" if self.seen else "nothing was recorded")
        if reason:
            return message.unjudged(reason)
        verdicts = [self._verdict(name, runs) for name, runs in self.seen.items()]
        self.over = [verdict for verdict in verdicts if verdict.exceeded]
        return message.text(self.over)

    def _verdict(self, name: str, runs: Sequence[Seen]) -> Verdict:
        file = self.recorder.last(name)
        walls = [run.wall_s for run in runs]
        return Verdict(name, exceeded(self.limits, runs), walls, str(file or ""))

    def rows(self) -> list[Row]:
        """What the table at the end says of it."""
        over = {verdict.block: verdict.exceeded for verdict in self.over}
        rows = [row(name, runs, over.get(name, ())) for name, runs in self.seen.items()]
        problem = self.recorder.problem or self.recorder.unkept
        return rows + [lost(problem)] * bool(problem)


_COURSE: Final = pytest.StashKey[Course]()


class Plugin:
    """Records tests.

    Args:
        tests: which, and their limits; or why the marker makes no sense.
        folder: where recordings are kept; None keeps none.
    """

    def __init__(self, tests: Mapping[pytest.Item, Limits | str], folder: Path | None) -> None:
        self._tests = tests
        self._folder = folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin anew, also where a test is tried again."""
        found = self._tests.get(item)
        if isinstance(found, str):
            pytest.fail(found, pytrace=False)
        if found is not None:
            recorder = item.stash[RECORDER] = Recorder(item.nodeid, self._folder)
            whole = _FIXTURE not in getattr(item, "fixturenames", ())
            item.stash[_COURSE] = Course(found, recorder, whole=whole)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Record each call of the test's function; fail the test if it is beyond its limits."""
        course = item.stash.get(_COURSE, None)
        if course is None or not isinstance(item, pytest.Function):
            return (yield)
        with _replaced(item, course):
            yield
        if course.recorder.passed:
            reason = course.judge()
            if reason:
                pytest.fail(reason, pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the report what the table needs; it travels with it from xdist's workers."""
        report = yield
        course = item.stash.get(_COURSE, None)
        if course is None or call.when != "call":
            if course is not None and call.when == "teardown":
                course.recorder.forget()  # pytest keeps its items to the end
            return report
        if course.recorder.running:  # of a subtest
            course.recorder.failed_in_part |= report.failed
        else:
            setattr(report, "stageprof", [list(line) for line in course.rows()])  # noqa: B010
        return report


def plugin(items: Sequence[pytest.Item], folder: Path | None, *, worker: bool) -> Plugin:
    """The plugin that records these tests.

    Args:
        items: the tests.
        folder: where recordings are kept; None keeps none.
        worker: whether this is a worker of xdist, whose errors of usage nobody would see: there
            a test fails whose marker makes no sense.

    Raises:
        pytest.UsageError: a marker makes no sense, or the folder cannot be made.
    """
    tests = {item: _limits(item) for item in items}
    wrong = next((found for found in tests.values() if isinstance(found, str)), None)
    if not worker:
        if wrong is not None:
            raise pytest.UsageError(wrong)
        if folder is not None:
            _make(folder)
    return Plugin(tests, folder)


def _limits(item: pytest.Item) -> Limits | str:
    try:
        return limits(_given(item))
    except UsageError as error:
        return safe(f"{item.nodeid}: {error} (in @pytest.mark.stageprof)", limit=2000)


def _given(item: pytest.Item) -> dict[str, Any]:
    """What the markers of a test say; the closest to it goes first."""
    given: dict[str, Any] = {}
    for marker in item.iter_markers("stageprof"):
        if marker.args:
            raise UsageError(
                f"{', '.join(map(repr, marker.args))} without a name", expected="max_wall='3s'"
            )
        given = {**marker.kwargs, **given}
    return given


def _make(folder: Path) -> None:
    try:
        make_folders(folder)
    except OSError as error:
        raise pytest.UsageError(
            f"--stageprof: {folder} cannot be made ({error.strerror}); choose another folder"
        ) from None


@contextmanager
def _replaced(item: pytest.Function, course: Course) -> Iterator[None]:
    """The test's function recorded meanwhile."""
    calls = Calls(course.limits.repeat, whole=course.whole, after=course.look)
    plain = item.obj
    item.obj = recorded(plain, course.recorder, calls)
    case = item.instance if isinstance(item.instance, unittest.TestCase) else None
    if case is not None:  # unittest looks up coroutines by name
        setattr(case, item.name, item.obj)
    try:
        yield
    finally:
        item.obj = plain
        if case is not None and item.name in vars(case):
            delattr(case, item.name)
        course.look()
