"""Data that the user scatters: which objects these are, and where they have them from.

Whoever scatters the same object again sends all of it again. Another piece of it is another
object, and so is one that was changed in between: Dask makes the key of a content, or else a sample
of an array's elements tells.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.budget import Budget
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import within
from stageprof_runtime.event import FETCHED, SCATTER, SCATTERED
from stageprof_runtime.fetched import fetched
from stageprof_runtime.holding import LEAST
from stageprof_runtime.kinds import title
from stageprof_runtime.kinship import extent, is_numpy, sampled
from stageprof_runtime.lines import user_line
from stageprof_runtime.names import Known, Names
from stageprof_runtime.naming import UNKNOWN, find
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.scopes import Stack
from stageprof_runtime.stage import STEP, Stage
from stageprof_runtime.weight import weigh

#: Objects told of in one call.
MOST: Final = 100
#: Objects and contents that are told apart.
KNOWN: Final = 5_000
#: Where `hash` is among what `Client.scatter` is given after the data.
_HASH: Final = 3


class _Seen(NamedTuple):
    """A large object that is about to be scattered, and the user's line that does it."""

    value: Any
    #: its place in the data
    at: int
    known: Known
    by: tuple[str, int]
    nbytes: int


def install(emit: Emit) -> Undo:
    """Tell of each large object that a client scatters from now on, and of the time to hash it."""
    scatters = Scatters(emit)
    return together(
        [
            replace(*place("client.scatter"), scatters.wrap),
            replace(*place("client.tokenize"), functools.partial(_hashing, emit)),
            scatters.names.clear,
        ]
    )


def _hashing(emit: Emit, tokenize: Callable[..., str]) -> Callable[..., str]:
    """What a client's event loop does that nobody sees from outside: its caller waits for it."""

    @functools.wraps(tokenize)
    def timed(*args: Any, **kwargs: Any) -> str:
        if asyncio._get_running_loop() is None:
            return tokenize(*args, **kwargs)
        with within("client", Stage.CONSTRUCTION, STEP["tokenize"]):
            start, cpu = now_ns(), thread_ns()
            try:
                return tokenize(*args, **kwargs)
            finally:
                emit.span("client", STEP["tokenize"], start, now_ns(), cpu=cpu)

    return timed


class Scatters:
    """What is known of the objects that were scattered, within a budget of time."""

    def __init__(self, emit: Emit) -> None:
        self.names = Names()
        #: object and content -> what it is told by
        self._numbers: dict[tuple[int, object], int] = {}
        self._new = itertools.count(1)
        self._emit = emit
        self._budget = Budget([0, 0])

    def wrap(self, scatter: Callable[..., Any]) -> Callable[..., Any]:
        """`Client.scatter`, whose data are looked at."""

        def told(client: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
            start, seen = now_ns(), list[_Seen]()
            if self._budget.left(start) > 0:
                seen = self._seen(data, sys._getframe(1))
                self._budget.spend(now_ns() - start)
            sent = scatter(client, data, *args, **kwargs)
            if seen:
                hashed = kwargs.get("hash", args[_HASH] if len(args) > _HASH else True)
                self._tell(start, seen, _keys(data, sent) if hashed else [])
            return sent

        return told

    def _seen(self, data: Any, caller: FrameType) -> list[_Seen]:
        stack, by = Stack(caller), user_line(caller)
        try:
            weights = [(i, value, weigh(value)) for i, value in enumerate(_values(data))]
            large = [each for each in weights if each[2] >= LEAST]
            return [_Seen(value, i, self._known(value, stack), by, n) for i, value, n in large]
        finally:
            stack.clear()

    def _tell(self, t: int, seen: list[_Seen], keys: list[str]) -> None:
        for each in seen:
            known, kind = each.known, title(type(each.value))
            number = self._number(each, keys[each.at] if keys else "")
            self._emit.row(
                "client", (SCATTER, t, number, kind, *known.origin, *each.by, each.nbytes)
            )
            if known.key is not None:
                self._emit.row("client", (FETCHED, number, SCATTERED, known.key))

    def _number(self, seen: _Seen, key: str) -> int:
        """The same for the same content of the same object."""
        if len(self._numbers) >= KNOWN:
            self._numbers.clear()
        content = key or _content(seen.value)
        return self._numbers.setdefault((seen.known.number, content), next(self._new))

    def _known(self, value: object, stack: Stack) -> Known:
        known = self.names.get(value)
        if known is not None:
            return known
        key = fetched.key_of(value)
        return self.names.keep(value, find(value, stack) or UNKNOWN, key=key)


def _values(data: Any) -> list[Any]:
    """What of it becomes a future of its own."""
    if type(data) is dict:
        return list(itertools.islice(data.values(), MOST))
    if type(data) in (list, tuple, set, frozenset):
        return list(itertools.islice(data, MOST))
    return [data]


def _keys(data: Any, sent: Any) -> list[str]:
    """The keys that Dask made of contents, in the order of the data; none where it made none.

    A dict's keys are the user's, a set has no order, and a coroutine has not scattered yet.
    """
    futures = sent if type(data) in (list, tuple) else [sent]
    if type(data) in (dict, set, frozenset) or type(futures) not in (list, tuple):
        return []
    keys = [getattr(future, "key", None) for future in futures]
    return [str(key) for key in keys] if None not in keys else []


def _content(value: Any) -> object:
    """What tells an array's piece, and what is in it, from others; nothing of what is no array."""
    if not is_numpy(value):
        return None
    return extent(value), None if value.dtype.hasobject else sampled(value)
