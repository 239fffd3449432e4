"""`stageprof.check`: what can be said of a computation before it runs.

A collection is looked at as it is. A function or a program runs until it hands Dask something to
compute; that is looked at, and the program ends there, or (`everything`) goes on.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, Final, Self

import dask
from dask.base import collections_to_expr, is_dask_collection
from dask.highlevelgraph import HighLevelGraph

from stageprof.checked import Checked
from stageprof.configuration import Given as GivenSettings
from stageprof.configuration import settings_of
from stageprof.reading import reading
from stageprof.recording import Recording
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.preflight.checkup import LIMIT_S, Checkup, Looking
from stageprof_collectors.preflight.dividing import divided_first
from stageprof_collectors.preflight.rates import measured
from stageprof_collectors.preflight.reading import inside
from stageprof_collectors.text import safe
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_runtime.handover import CLUSTER, THREADS, Given, Handover
from stageprof_runtime.kinds import package_of
from stageprof_runtime.parts import EXPRESSION, part_of

#: What is not looked at of a program that was stopped.
_REST: Final = (
    "what comes after {}, where it hands Dask something to compute for the first time: it was "
    "stopped there (--all, everything=True in Python, lets it compute and looks at all of it)"
)
logger = logging.getLogger("stageprof")

#: Functions whose call only makes what would compute.
_LATER: Final = (
    inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction,
)  # fmt: skip
#: Expressions up to which a collection is optimized to be looked at: some 5 ms each.
OPTIMIZED: Final = 200


def check(
    what: Any,
    client: Any = None,
    *,
    everything: bool = False,
    limit_s: float = LIMIT_S,
    like: Recording | str | os.PathLike[str] | None = None,
    settings: GivenSettings = None,
) -> Checked:
    """The findings of a computation before it runs.

    Args:
        what: a Dask collection, a list, tuple or dict of them, an expression, or a function
            without arguments, which is called: it ends where it hands Dask the first graph.
        client: of the cluster that will run it; None for the active one.
        everything: of a function: let it compute, and look at each graph and not only the first.
        limit_s: seconds that looking at one graph may take.
        like: a recording of a similar run, or its path: costs are predicted as they were there.
        settings: as for `Recording.findings`.

    Raises:
        UsageError: there is nothing to check in `what`, or an argument makes no sense.
        StageprofError: the recording cannot be read.
    """
    looking = looking_of(client, limit_s, like, settings)
    off = tuple(sorted(looking.settings.off))
    collections = list(_collections(what))
    if collections:
        on_cluster = client is not None or _computes_on_clients()
        scheduler = CLUSTER if looking.client and on_cluster else _scheduler(collections[0])
        return Checked(_collected(collections, looking, scheduler, sys._getframe(1)), off=off)
    if not callable(what):
        raise UsageError(
            f"nothing of Dask in a {type(what).__name__}",
            expected="a collection, a list of them, or a function",
        )
    if any(kind(what) for kind in _LATER):
        raise UsageError(
            f"{safe(getattr(what, '__name__', 'it'), limit=200)} does nothing when it is called",
            expected="a function that computes when it is called",
            do="for a coroutine: stageprof.check(lambda: asyncio.run(main()))",
        )
    name = getattr(what, "__name__", "function")
    with Preflight(looking, everything=everything) as flight:
        what()
    return Checked(flight.result(), name if type(name) is str else "function", off)


def looking_of(
    client: Any, limit_s: float, like: Recording | str | os.PathLike[str] | None, settings: Any
) -> Looking:
    """How to look, from what the caller said.

    Raises:
        UsageError, RecordingError: it makes no sense, or the recording cannot be read.
    """
    if not 0 < limit_s < float("inf"):
        raise UsageError(f"limit_s is {limit_s!r}", expected="seconds above 0")
    if like is not None and not isinstance(like, Recording):
        like = _usable(os.fspath(like))
    return Looking(settings_of(settings), limit_s, like, client or _active())


def _usable(path: str) -> Recording:
    """The recording at a path, of which it is known that costs can be read off it."""
    with reading(path) as recording:
        measured(recording, THREADS)
    if not recording.complete:
        why = recording.store.incomplete_reason
        said = safe(f"{path} is not whole ({why}); costs are of what is there", limit=2000)
        logger.warning("stageprof: %s", said)
    return recording


def _active() -> Any:
    from distributed import Client

    try:
        return Client.current()
    except ValueError:
        return None


# -- collections ----------------------------------------------------------------------------------


def _collections(what: Any, depth: int = 4) -> Iterator[Any]:
    """The collections in lists, tuples and dicts."""
    if type(what) in (list, tuple, dict) and depth:
        for part in what.values() if type(what) is dict else what:
            yield from _collections(part, depth - 1)
    elif _is_expression(what) or (not isinstance(what, type) and is_dask_collection(what)):
        yield what


def _collected(
    collections: list[Any], looking: Looking, scheduler: str, frame: FrameType
) -> Checkup:
    handover = Handover(lambda _: True)
    graph, unseen = _graph(collections)
    try:
        given = Given(graph, scheduler, looking.client, frame, asked=_asked(collections))
        looking.look(given, handover)
    finally:
        handover.names.clear()
    return looking.result(unseen)


def _computes_on_clients() -> bool:
    """Whether a client that is there computes: a scheduler that is configured goes first."""
    return dask.config.get("scheduler", None) in (None, "dask.distributed")


def _scheduler(collection: Any) -> str:
    """Who runs a collection where there is no cluster."""
    from dask.base import get_scheduler

    known = hasattr(type(collection), "__dask_scheduler__")  # an expression does not say
    try:
        get = get_scheduler(collections=[collection] if known else None)
    except (RuntimeError, ValueError) as error:  # as `compute` would say
        raise UsageError(
            f"the scheduler that is configured is not there ({safe(str(error), limit=200)})",
            expected="a client that is connected, or a scheduler of Dask's own",
            do="make a Client first, or dask.config.set(scheduler=None)",
        ) from error
    module = getattr(get, "__module__", "")
    if module.partition(".")[0] == "distributed":
        return CLUSTER
    return {"dask.multiprocessing": "processes", "dask.local": "synchronous"}.get(module, THREADS)


def _graph(collections: list[Any]) -> tuple[list[Any], list[str]]:
    """Their graphs, merged where they are layers, and what could not be made of them.

    Not made into what `compute` hands over: that would list every key, which takes its time.
    """
    exprs, layers = [], []
    for each in collections:
        if _is_expression(each):
            exprs.append(each)
        elif _is_expression(getattr(each, "expr", None)):
            exprs.append(collections_to_expr([each]))  # which may not fuse what its own would
        else:
            layers.append(each.__dask_graph__())
    unseen: list[str] = []
    graphs = [_optimized(expr, unseen) for expr in exprs]
    return graphs + ([HighLevelGraph.merge(*layers)] if layers else []), unseen


def _asked(collections: list[Any]) -> frozenset[str]:
    """The layers that are theirs: one that another of them needs, too, is to be kept."""
    told = [each for each in collections if hasattr(each, "__dask_layers__")]
    return frozenset(str(name) for each in told for name in each.__dask_layers__())


def _optimized(expr: Any, unseen: list[str]) -> Any:
    """An expression as it would be run."""
    if not _small(expr):
        unseen.append(f"what optimization changes: there are more than {OPTIMIZED:,} expressions")
        return expr
    if divided_first(expr, inside, OPTIMIZED + 1):
        unseen.append("what optimization changes: it computes where to divide what is sorted first")
        return expr
    try:
        return expr.optimize()
    except Exception as error:  # the run would fail as well; what is there can be looked at
        unseen.append(f"what optimization changes ({type(error).__name__}: {error})"[:160])
        return expr


def _is_expression(value: Any) -> bool:
    return package_of(type(value)) == "dask" and part_of(value) == EXPRESSION


def _small(expr: Any) -> bool:
    seen, stack = {id(expr)}, [expr]
    while stack and len(seen) <= OPTIMIZED:
        for part in stack.pop().operands:
            if _is_expression(part) and id(part) not in seen:
                seen.add(id(part))
                stack.append(part)
    return len(seen) <= OPTIMIZED


# -- functions and programs -----------------------------------------------------------------------


class Preflight:
    """A block in which what is handed to Dask is looked at, and not run unless `everything`."""

    def __init__(self, looking: Looking, *, everything: bool = False) -> None:
        self._looking = looking
        self._everything = everything
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._handover = Handover(self._take, removes=everything)
        self._undo: Callable[[], None] | None = None
        #: the line from which something was kept from running ("" if unknown); None if nothing was
        self.stopped: str | None = None

    def __enter__(self) -> Self:
        try:
            self._undo = self._handover.install()
        except (ImportError, AttributeError) as error:
            raise StageprofError(
                f"this version of Dask cannot be watched ({error})", do="see `stageprof --version`"
            ) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        if self._undo is not None:
            self._undo()
        # What a program raises after it was stopped comes of that.
        ended = kind is not None and issubclass(kind, KeyboardInterrupt | StageprofError)
        return self.stopped is not None and kind is not None and not ended

    def _take(self, given: Given) -> bool:
        if os.getpid() != self._pid:  # a child that the program forked has the same wrappers
            return True
        if not self._everything and self.stopped is None:
            self.stopped = ""
            with contextlib.suppress(Exception):
                self.stopped = at(*given.line)
        with self._lock, contextlib.suppress(Exception):
            self._looking.look(given, self._handover)
        return self._everything

    def result(self) -> Checkup:
        """What was found; its seconds include what was noted while graphs were made."""
        rest = () if self.stopped is None else (_REST.format(self.stopped or "that"),)
        found = self._looking.result(rest)
        spent = found.seconds + self._handover.spent_ns / 1e9
        return replace(found, seconds=spent, stopped=self.stopped)


__all__ = ["Preflight", "check", "looking_of"]
