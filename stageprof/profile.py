"""`stageprof.profile`: a context manager, a decorator, or `start()` and `stop()`."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar, cast

from distributed import Client

from stageprof.options import Options
from stageprof.recording import Recording
from stageprof_collectors.storage.collector import Collector, Live
from stageprof_runtime.cells import number_of
from stageprof_runtime.counting import Counting
from stageprof_runtime.errors import UsageError
from stageprof_runtime.lines import user_frame
from stageprof_runtime.session import Session

P = ParamSpec("P")
T = TypeVar("T")


_BESIDE: Final = (
    "stageprof: {} was called while another call of it is being recorded to its file; this call "
    "is recorded in memory only; decorate what calls both, or leave the path out"
)


_LATER: Final = (
    "stageprof: what {} gave is a {}, which runs after the recording; put `with "
    "stageprof.profile():` (or `async with`) around what uses it"
)

_WATCHLESS: Final = "C frames are looked at by the watch of the GIL, which is off"


class profile:  # noqa: N801 (used like a function, as pyinstrument's)
    """Record the Dask computations of a block, a function, or from `start()` to `stop()`.

    ::

        with stageprof.profile("etl.stageprof") as prof:
            ddf.groupby("id").x.mean().compute()
        print(prof.recording)

    Args:
        path: the recording file; None keeps the recording in memory.
        client: the distributed client whose cluster is recorded; None finds the active one,
            follows clients that start within the region, and records local schedulers.
        label: what the recording is called; by default where in the user's code it began.
        deterministic: count every call in the region's thread with cProfile. That takes two to
            four times as long where Dask builds graphs; see docs/profiles.md.
        gil: watch who holds the GIL of each process and who waits for it; see docs/gil.md.
        native: record C frames of tasks, for which py-spy pauses their process some times a second;
            see docs/profiles.md.

    Raises:
        RecordingNotWritable: `path` cannot be written; nothing of the block has run then.
        UsageError: `native` without `gil`; when it begins, `client` is none.
    """

    #: what the region is where an exception leaves it
    _what = "block"

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        client: Any = None,
        label: str | None = None,
        deterministic: bool = Options.deterministic,
        gil: bool = Options.gil,
        native: bool = Options.native,
    ) -> None:
        if callable(path):
            raise UsageError("@stageprof.profile without brackets", do="write @stageprof.profile()")
        self._path = path
        self._client = client
        self._label = label
        self._deterministic = deterministic
        if native and not gil:
            raise UsageError(_WATCHLESS, do="leave gil=False (--no-gil) out")
        self._watching: Any = {"watch_gil": gil, "native": native}
        self._collector: Collector | None = None
        self._session: Session | None = None
        self._counting: Counting | None = None
        self._recording: Recording | None = None
        #: the call of a decorated function that has the file; no lock, which cannot be pickled
        self._writing: dict[str, object] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process has the options alone, and finds the client that is there.

        Functions that are decorated are sent to workers: not with the recording of the latest call.
        """
        mine = dict.fromkeys(("_client", "_collector", "_session", "_counting", "_recording"))
        return vars(self) | mine | {"_writing": {}}

    @property
    def recording(self) -> Recording:
        """What was recorded; there once the region has ended.

        Raises:
            UsageError: the region has not ended.
        """
        if self._recording is None:
            raise UsageError("the region has not ended", do="leave the block or call stop() first")
        return self._recording

    @property
    def live(self) -> Live:
        """How far the run is, while the region goes on."""
        return self._collector.live if self._collector is not None else Live()

    # -- start and stop -----------------------------------------------------------------------

    def start(self) -> Self:
        """Begin the region, in this thread."""
        return self._start(sys._getframe(1))

    def stop(self) -> Recording:
        """End the region."""
        if self._session is None:
            raise UsageError("stop() without start()", do="call start() first")
        try:
            try:
                self._count_no_more()
            finally:
                self._session.stop()
        finally:
            self._close()
        return self.recording

    def ended(self, error: BaseException, what: str = "program") -> None:
        """Note that what is recorded ends with an exception: its type, never what it says.

        Args:
            error: the exception that leaves the region, which still goes on.
            what: the region is: "program", "block", "function" or "cell".
        """
        if self._session is not None:
            self._session.ended(error, what)

    def _start(self, caller: FrameType) -> Self:
        session = self._open(caller)
        try:
            session.start(self._client)
        except BaseException:
            self._close()
            raise
        self._count(session)
        return self

    def _open(self, caller: FrameType) -> Session:
        if self._session is not None:
            raise UsageError("start() was called twice", do="call stop() first")
        if not isinstance(self._client, Client | None):
            seen = f"a {type(self._client).__name__} as client"
            raise UsageError(seen, expected="a distributed.Client", do="make one, or leave it out")
        self._recording = None
        label = self._label or _label(caller)
        collector = Collector(self._path, label, whole=self._what == "program")
        self._collector = collector
        self._session = Session(collector.take, cost=collector.cost, **self._watching)
        return self._session

    def _close(self) -> None:
        collector, self._collector, self._session = self._collector, None, None
        if collector is not None:
            self._recording = Recording.of(collector.close())

    def _count(self, session: Session) -> None:
        if self._deterministic:
            self._counting = Counting(session.ring)
            self._counting.begin()

    def _count_no_more(self) -> None:
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.end()

    # -- block --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self._start(sys._getframe(1))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.ended(error, self._what)
        if self._session is not None:  # the block may have called `stop`
            self.stop()

    async def __aenter__(self) -> Self:
        session = self._open(sys._getframe(1))
        try:
            await session.start_async(self._client)
        except BaseException:
            self._close()
            raise
        self._count(session)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.ended(error, self._what)
        try:
            try:
                self._count_no_more()
            finally:
                if self._session is not None:
                    await self._session.stop_async()
        finally:
            self._close()

    # -- decorator ----------------------------------------------------------------------------

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """The same function, each call recorded; `recording` is that of the latest call.

        Of a coroutine function what it awaits is recorded.

        Raises:
            UsageError: it is a generator function, of which a call does nothing yet.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{function.__qualname__} gives its results one by one",
                expected="a function or coroutine function to decorate",
                do="use `with stageprof.profile():` where its results are used",
            )
        label = self._label or f"Function {getattr(function, '__qualname__', function)}"
        if inspect.iscoroutinefunction(function):
            return cast("Callable[P, T]", self._awaited(function, label))

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
            with self._again(label) as region, region:
                result = function(*args, **kwargs)
            if type(result) in (CoroutineType, GeneratorType, AsyncGeneratorType):
                warnings.warn(_LATER.format(label, type(result).__name__), stacklevel=2)
            return result

        return recorded

    def _awaited(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        @functools.wraps(function)
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            with self._again(label) as region:
                async with region:
                    return await function(*args, **kwargs)

        return recorded

    @contextmanager
    def _again(self, label: str) -> Iterator[profile]:
        """A region of its own for one call; a call within or beside it has no file."""
        me = object()
        path = self._path if self._writing.setdefault("file", me) is me else None
        if path is not self._path:
            warnings.warn(_BESIDE.format(label), stacklevel=4)
        watched = {"gil": self._watching["watch_gil"], "native": self._watching["native"]}
        more: Any = {"deterministic": self._deterministic, **watched}
        region = profile(path, client=self._client, label=label, **more)
        region._what = "function"
        try:
            yield region
        finally:
            self._recording = region._recording
            if self._writing.get("file") is me:
                del self._writing["file"]


def _label(caller: FrameType) -> str:
    here = user_frame(caller) or caller  # `ExitStack` calls it for the user
    file = here.f_code.co_filename
    cell = number_of(file)
    return f"Block at {Path(file).name if cell is None else f'In [{cell}]'}:{here.f_lineno}"
