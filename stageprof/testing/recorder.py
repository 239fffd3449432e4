"""Recording a test: the regions of its blocks, or one around each call of its function."""

from __future__ import annotations

import functools
import inspect
import unittest
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from stageprof.pathname import path_name
from stageprof.private import FILE, make_folders
from stageprof.profile import profile
from stageprof.recording import Recording
from stageprof_runtime.errors import StageprofError, UsageError

Function = Callable[..., Any]


class Calls(NamedTuple):
    """How a test's function is called."""

    #: how often
    repeat: int
    #: whether each call is recorded; else the test records blocks
    whole: bool
    #: what is done after each call
    after: Callable[[], None]


class Block(NamedTuple):
    """A block of a test, and the region that records it; None if nobody asks for it any more."""

    name: str
    region: profile | None
    path: Path | None


class Recorder:
    """Makes the regions of one test.

    Args:
        test: what its recordings are called: its node id.
        folder: where they are kept; None keeps them in memory.
    """

    def __init__(self, test: str, folder: Path | None = None) -> None:
        self.test = test
        self.folder = folder
        self.blocks: list[Block] = []
        #: why something was not recorded; "" if all was
        self.problem = ""
        #: why nothing is kept, which is no reason for not being judged
        self.unkept = ""
        #: whether the test's function returned each time
        self.passed = False
        #: whether it is being called, and whether a part of it (a subtest) has failed meanwhile
        self.running = self.failed_in_part = False
        self._counts: Counter[str] = Counter()
        self._told = 0

    def __call__(self, name: str = "") -> profile:
        """A region for `with` or `async with`, or a decorator; see `stageprof.profile`.

        Args:
            name: of the block, if a test records several that are to be told apart.
        """
        label = f"{self.test}::{name}" if name else self.test
        self._counts[name] += 1
        path = self._placed(label, self._counts[name])
        region = profile(path, label=label)
        self.blocks.append(Block(name, region, path))
        return region

    @property
    def recording(self) -> Recording:
        """The recording of the block that ended last.

        Raises:
            UsageError: none has ended yet.
        """
        ended = self.ended()
        if not ended:
            raise UsageError(
                "no block was recorded", do='write: with stageprof_recorder("name"): ...'
            )
        return ended[-1][1]

    def ended(self) -> list[tuple[str, Recording]]:
        """Name and recording of each block that has ended."""
        found = [(b.name, b.region._recording) for b in self.blocks if b.region is not None]
        return [(name, recording) for name, recording in found if recording is not None]

    def forget(self) -> None:
        """Let go of all recordings: they may be large, and there may be many."""
        self.blocks = [block._replace(region=None) for block in self.blocks]
        self._told = 0

    def fresh(self) -> list[tuple[str, Recording]]:
        """Those that have ended since this was last asked."""
        found = self.ended()
        fresh, self._told = found[self._told :], len(found)
        return fresh

    def last(self, name: str) -> Path | None:
        """The file that holds the last recording of a block, if it was kept."""
        return next((b.path for b in reversed(self.blocks) if b.name == name), None)

    def drop(self) -> None:
        """Remove what was recorded: the test skipped itself."""
        for block in self.blocks:
            if block.path is not None:
                block.path.unlink(missing_ok=True)
                with suppress(OSError):  # something else is there
                    block.path.parent.rmdir()
        self.blocks.clear()

    def _placed(self, label: str, number: int) -> Path | None:
        """As `_path`; None, which keeps it in memory, where nothing can be written there."""
        try:
            path = self._path(label, number)
            if path is not None and not path.exists():
                path.touch(FILE)
                path.unlink()
        except OSError as error:
            self.unkept = f"nothing was kept ({error.strerror or error})"
            return None
        return path

    def _path(self, label: str, number: int) -> Path | None:
        if self.folder is None:
            return None
        place = self.folder / folder_name(label)
        make_folders(place)
        if number == 1:  # those of an earlier run, which may have been more
            for old in place.glob("*.stageprof"):
                if old.stem.isdecimal():
                    old.unlink(missing_ok=True)
        return place / f"{number}.stageprof"


RECORDER: Final = pytest.StashKey[Recorder]()


def recorder_of(item: pytest.Item) -> Recorder:
    """The recorder of a test; a new one, which keeps no file, if nothing else records it."""
    return item.stash.setdefault(RECORDER, Recorder(item.nodeid))


def folder_name(label: str) -> str:
    """The name of the folder for the recordings of a test or block."""
    file, _, rest = label.partition("::")
    return path_name(label, f"{file.rpartition('/')[2]}-{rest}")


# -- around each call of the test's function --------------------------------------------------


def recorded(function: Function, recorder: Recorder, calls: Calls) -> Function:
    """The same function, called as often as wished, each call recorded."""
    if inspect.iscoroutinefunction(function):
        return _awaited(function, recorder, calls)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = None
        with _ending(recorder):
            for _ in _rounds(recorder, calls):
                with _region(recorder) if calls.whole else nullcontext():
                    result = function(*args, **kwargs)
                calls.after()
        return result

    return run


def _awaited(function: Function, recorder: Recorder, calls: Calls) -> Function:
    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        result = None
        with _ending(recorder):
            for _ in _rounds(recorder, calls):
                async with _async_region(recorder) if calls.whole else nullcontext():
                    result = await function(*args, **kwargs)
                calls.after()
        return result

    return run


def _rounds(recorder: Recorder, calls: Calls) -> Iterator[int]:
    """As many as there are to be, until a part of one has failed."""
    return (i for i in range(calls.repeat) if not recorder.failed_in_part)


@contextmanager
def _ending(recorder: Recorder) -> Iterator[None]:
    """Note whether the test passed; what a test did that skips itself is not kept."""
    recorder.running = True
    try:
        yield
    except (pytest.skip.Exception, unittest.SkipTest):
        recorder.drop()
        raise
    finally:
        recorder.running = False
    recorder.passed = not recorder.failed_in_part


@contextmanager
def _region(recorder: Recorder) -> Iterator[None]:
    """Record; what cannot be recorded is run nevertheless."""
    region = None
    with _noting(recorder):
        region = recorder().start()
    try:
        with _failing(recorder, region):
            yield
    finally:
        if region is not None:
            with _noting(recorder):
                region.stop()


@asynccontextmanager
async def _async_region(recorder: Recorder) -> AsyncIterator[None]:
    """The same for the task that runs here."""
    region = None
    with _noting(recorder):
        region = await recorder().__aenter__()
    try:
        with _failing(recorder, region):
            yield
    finally:
        if region is not None:
            with _noting(recorder):
                await region.__aexit__(None, None, None)


@contextmanager
def _failing(recorder: Recorder, region: profile | None) -> Iterator[None]:
    """Have the recording say that the test failed: nobody may take it for a fast one."""
    try:
        yield
    except BaseException as error:
        _say(recorder, region, error)
        raise
    if recorder.failed_in_part:
        _say(recorder, region, pytest.fail.Exception("in a part of it"))


def _say(recorder: Recorder, region: profile | None, error: BaseException) -> None:
    if region is not None:
        with _noting(recorder):
            region.ended(error, "function")


@contextmanager
def _noting(recorder: Recorder) -> Iterator[None]:
    """A recording that cannot be made or written is no reason for a test to fail."""
    try:
        yield
    except (StageprofError, OSError) as error:
        recorder.problem = str(error)
    except Exception as error:  # an event loop that is not asyncio's, for one
        recorder.problem = f"{type(error).__name__}: {error}"
