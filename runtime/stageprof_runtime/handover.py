"""What is about to be run: each graph on its way to a scheduler, before anything of it runs.

A watch is told of every graph that is handed to a cluster or to a local scheduler, and of every
training that begins. It says whether the program may go on; if not, the program ends there, with
its `finally` clauses and context managers. Nothing is run that was not looked at, not even if the
look fails.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.collection import Facts, facts_of
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.lines import user_line
from stageprof_runtime.made import MOST, prefix_of
from stageprof_runtime.naming import UNKNOWN, Origin, find
from stageprof_runtime.overwriting import kept
from stageprof_runtime.patch import Undo, observe, replace, together
from stageprof_runtime.probes.layers import at_once
from stageprof_runtime.probes.objects import Objects
from stageprof_runtime.probes.training import ENTRIES, Entry, entered
from stageprof_runtime.scopes import Stack
from stageprof_runtime.shield import theirs

#: Who runs a graph.
CLUSTER, PROCESSES, THREADS, SYNCHRONOUS = "cluster", "processes", "threads", "synchronous"

#: Where Dask computes what Parquet files say of their sizes and ranges.
_READER: Final = os.path.join("dask_expr", "io", "parquet.py")
_WHY: Final = "stageprof check looks at what would run and runs nothing"


class Stopped(BaseException):
    """Ends a program before it computes; no `Exception`, so that programs do not catch it."""


class Refused(Exception):
    """The same where an event loop in a thread of its own has to hand it on to the program."""


class Trained(NamedTuple):
    """Data that goes into a training."""

    call: str
    facts: Facts
    origin: Origin


class Given(NamedTuple):
    """What is about to be run."""

    #: expression, or a plain graph
    graph: Any
    #: who runs it
    scheduler: str
    client: Any
    frame: FrameType
    trained: Trained | None = None
    #: names of the layers that are asked for, of graphs that do not say it
    asked: frozenset[str] = frozenset()

    @property
    def line(self) -> tuple[str, int]:
        """The user's line that asks for it."""
        return user_line(self.frame)


#: Whether the program may go on.
Take = Callable[[Given], bool]


class _Silent:
    """The probes whose wrappers are used here emit nothing."""

    def row(self, *_: Any) -> None:
        pass

    span = share = stack = flame = native = row_of = row


class _Thread(threading.local):
    graph: Any = None
    training: bool = False


class Handover:
    """The watch: what was made at which line, what objects are called, and what comes to be run."""

    def __init__(self, take: Take, *, removes: bool = True) -> None:
        self._take = take
        #: whether a call that computes may remove first what it is to write anew
        self._removes = removes
        self._here = _Thread()
        #: [looks, ns] of looking at objects
        self._looking = [0, 0]
        self._objects = Objects(_Silent(), self._looking)
        self._lines: dict[str, tuple[str, int]] = {}
        self._noting = 0
        self._undos: list[Undo] = []

    @property
    def names(self) -> Any:
        """The names of objects, found where layers and expressions were made."""
        return self._objects.names

    def line_of(self, name: str) -> tuple[str, int]:
        """The line that made a layer or expression; ("", 0) if unknown."""
        return self._lines.get(name) or self._lines.get(prefix_of(name), ("", 0))

    @property
    def spent_ns(self) -> int:
        """What it took, while things were made, to note their lines and names."""
        return self._noting + self._looking[1]

    def install(self) -> Undo:
        """Watch until undone.

        Raises:
            ImportError, AttributeError: this version of Dask has other places.
        """
        observers = (
            ("graph.new", self._objects.graph),
            ("graph.init", functools.partial(at_once, self._note)),
            ("expr.new", self._objects.expression),
        )
        wrappers = (
            ("graph.new", self._graph),
            ("expr.new", self._expression),
            ("expr.optimize", self._optimize),
            ("client.submit", self._submit),
            ("threads.get_async", lambda f: self._locally(f, THREADS)),
            ("processes.get_async", lambda f: self._locally(f, PROCESSES)),
            ("local.get_async", lambda f: self._locally(f, SYNCHRONOUS)),
        )
        undo = together(self._undos)
        try:
            for where, observer in observers:
                self._undos.append(observe(*place(where), observer))
            for where, make in wrappers:
                self._undos.append(replace(*place(where), make, limited=False))
            entries = functools.partial(entered, self._training)
            self._undos.append(arrived(ENTRIES, entries))
            if not self._removes:
                self._undos.append(kept())
        except BaseException:
            undo()
            raise
        self._undos.append(self.names.clear)
        return undo

    # -- where things are made -----------------------------------------------------------------

    def _made(self, name: object, frame: FrameType) -> None:
        if type(name) is not str or inside.optimizing or len(self._lines) >= MOST:
            return
        start = now_ns()
        self._note(name, user_line(frame))
        self._noting += now_ns() - start

    def _note(self, name: str, line: tuple[str, int]) -> None:
        if line[0] and self._lines.setdefault(prefix_of(name), line) != line:
            self._lines.setdefault(name, line)

    def _graph(self, raw: Any) -> Any:
        from_collections = raw.__func__

        def noted(cls: type, name: str, *args: Any, **kwargs: Any) -> Any:
            self._made(name, sys._getframe(1))
            return from_collections(cls, name, *args, **kwargs)

        return classmethod(noted)

    def _expression(self, raw: Any) -> Any:
        new: Callable[..., Any] = raw.__func__ if isinstance(raw, staticmethod) else raw

        def made(cls: type, *args: Any, **kwargs: Any) -> Any:
            expr = new(cls, *args, **kwargs)
            self._made(vars(expr).get("_name"), sys._getframe(1))
            return expr

        return staticmethod(made)

    def _optimize(self, optimize: Callable[..., Any]) -> Callable[..., Any]:
        """What comes out is what is run: a scheduler of processes is given its tasks alone."""

        def optimized(expr: Any, *args: Any, **kwargs: Any) -> Any:
            inside.optimizing += 1
            try:
                found = optimize(expr, *args, **kwargs)
            finally:
                inside.optimizing -= 1
            if not inside.optimizing:
                self._here.graph = found
            return found

        return optimized

    # -- where they are handed over ------------------------------------------------------------

    def _submit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def submitted(client: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
            self._see(Given(expr, CLUSTER, client, sys._getframe(1)))
            return function(client, expr, *args, **kwargs)

        return submitted

    def _locally(self, function: Callable[..., Any], scheduler: str) -> Callable[..., Any]:
        def got(submit: Any, workers: Any, dsk: Any, *args: Any, **kwargs: Any) -> Any:
            graph, self._here.graph = self._here.graph, None
            whole = dsk if type(dsk) is not dict or graph is None else graph
            self._see(Given(whole, scheduler, None, sys._getframe(1)))
            return function(submit, workers, dsk, *args, **kwargs)

        return got

    def _see(self, given: Given) -> None:
        """Tell of it, and end the program unless it may go on."""
        goes_on = False
        try:
            # An optimizer that reads what files say of themselves belongs to what comes then.
            goes_on = True if _of_files(given.frame) else self._take(given)
        finally:
            self._here.graph = None
            if not goes_on:
                theirs(_stop)

    # -- trainings -----------------------------------------------------------------------------

    def _training(self, entry: Entry, call: str) -> Callable[[Any], Any]:
        def make(function: Any) -> Any:
            def trained(*args: Any, **kwargs: Any) -> Any:
                frame, before = sys._getframe(1), self._here.training
                facts = Facts() if before else facts_of(entry.data.of(args, kwargs))
                if facts.pieces and user_line(frame)[0]:
                    origin = _origin(entry.data.of(args, kwargs), frame)
                    given = Given(None, CLUSTER, _client(), frame, Trained(call, facts, origin))
                    self._see(given)
                self._here.training = True
                try:
                    return function(*args, **kwargs)
                finally:
                    self._here.training = before

            return trained

        return make


def _of_files(frame: FrameType) -> bool:
    """Whether an optimizer computes for Dask's reader of Parquet."""
    at: FrameType | None = frame if inside.optimizing else None
    while at is not None:
        if at.f_code.co_filename.endswith(_READER):
            return True
        at = at.f_back
    return False


def _stop() -> None:
    main = threading.current_thread() is threading.main_thread()
    if asyncio._get_running_loop() is not None and not main:
        raise Refused(_WHY)
    raise Stopped(_WHY)


def _origin(data: object, frame: FrameType) -> Origin:
    stack = Stack(frame)
    try:
        return find(data, stack) or UNKNOWN
    finally:
        stack.clear()


def _client() -> Any:
    from distributed import Client

    try:
        return Client.current()
    except ValueError:
        return None
