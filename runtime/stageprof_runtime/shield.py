"""The shield around what a probe wraps: the wrapped function behaves as if nobody watched.

A probe's wrapper runs code of ours before and after the function that it observes. Whatever that
code raises, the function is called exactly once with the caller's arguments, and its own result
or exception is what the caller gets. One exception: what interrupts the user's thread, such as
Ctrl-C, may hit our code as well as theirs, and is theirs (`interrupts.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.guard import TIMED, Watch, cancelled, caught
from stageprof_runtime.interrupts import interrupted

Make = Callable[[Any], Any]


class _Timed(list[Any]):
    """How a function ended, as below, whose wrapper is timed; what is not the wrapper's runs in it.

    Args:
        stands_for: calls of the wrapper that this one stands for.
    """

    def __init__(self, stands_for: int) -> None:
        super().__init__()
        self._stands_for = stands_for
        #: what was not the wrapper's so far, ns; that and the clock as what runs now began
        self._theirs = 0
        self._within: list[tuple[int, int]] = []
        self._start = now_ns()

    def __enter__(self) -> None:
        self._within.append((self._theirs, now_ns()))

    def __exit__(self, *_: object) -> None:
        before, start = self._within.pop()
        self._theirs = before + now_ns() - start

    def tell(self, watch: Watch) -> None:
        """The call is over."""
        try:
            watch.took(now_ns() - self._start - self._theirs, self._stands_for)
        except BaseException as error:
            caught(error, watch)


#: How the wrapped function of the innermost shielded call ended: nothing, or [result, error].
#: It is empty again when the call is over, or it would keep the user's data alive.
_ended: ContextVar[list[Any] | None] = ContextVar("stageprof_ended", default=None)


def shield(raw: Any, make: Make, watch: Watch) -> Any:
    """What `make` makes of an attribute, unable to do harm; the same kind of descriptor."""
    if isinstance(raw, classmethod | staticmethod):
        kind = type(raw)
        return kind(_shield(raw.__func__, lambda f: make(kind(f)).__func__, watch))
    if isinstance(raw, functools.cached_property):
        inside = _shield(raw.func, lambda f: make(functools.cached_property(f)).func, watch)
        shielded = functools.cached_property(inside)
        shielded.__set_name__(object, str(raw.attrname))
        return shielded
    return _shield(raw, make, watch)


def theirs(function: Callable[..., Any], *args: Any) -> Any:
    """Call something of the user's from a wrapper: what it raises is handed on as theirs."""
    ended = _ended.get()
    try:
        if isinstance(ended, _Timed):
            with ended:
                return function(*args)
        return function(*args)
    except BaseException as error:
        if ended is not None:
            ended[:] = None, error
        raise


def _shield(function: Any, make: Make, watch: Watch) -> Any:
    waits = inspect.iscoroutinefunction(function)
    return (_asynchronous if waits else _synchronous)(function, make, watch)


def _synchronous(function: Any, make: Make, watch: Watch) -> Any:
    ours = make(_seen(function))

    @functools.wraps(function)
    def shielded(*args: Any, **kwargs: Any) -> Any:
        if watch.disabled:
            return function(*args, **kwargs)
        before = _ended.get()
        ended = _opened(watch)
        try:
            _ended.set(ended)
            return ours(*args, **kwargs)
        except BaseException as error:
            if _theirs(error, ended):
                raise
            watch.failed(error)
            outcome = ended.copy()
        finally:
            _ended.set(before)
            if isinstance(ended, _Timed):
                ended.tell(watch)
            ended.clear()
        return _hand_on(outcome) if outcome else function(*args, **kwargs)

    return shielded


def _asynchronous(function: Any, make: Make, watch: Watch) -> Any:
    """The same for a coroutine function: awaited where the other is called."""
    ours = make(_seen_async(function))

    @functools.wraps(function)
    async def shielded(*args: Any, **kwargs: Any) -> Any:
        if watch.disabled:
            return await function(*args, **kwargs)
        before = _ended.get()
        ended = _opened(watch)
        try:
            _ended.set(ended)
            return await ours(*args, **kwargs)
        except BaseException as error:
            if _theirs(error, ended):
                raise
            watch.failed(error)
            outcome = ended.copy()
        finally:
            # A coroutine that nobody awaits any more ends wherever Python comes upon it.
            if _ended.get() is ended:
                _ended.set(before)
            if isinstance(ended, _Timed):
                ended.tell(watch)
            ended.clear()
        return _hand_on(outcome) if outcome else await function(*args, **kwargs)

    return shielded


def _opened(watch: Watch) -> list[Any]:
    """What a call notes its end in: the first ones are timed, then one in so many."""
    watch.calls = calls = watch.calls + 1
    if calls < TIMED:
        return _Timed(1)
    return [] if calls % TIMED else _Timed(TIMED)


def _seen(function: Any) -> Any:
    """The function, which notes how it ended."""

    @functools.wraps(function)
    def seen(*args: Any, **kwargs: Any) -> Any:
        ended = _ended.get()
        try:
            if isinstance(ended, _Timed):
                with ended:
                    result = function(*args, **kwargs)
            else:
                result = function(*args, **kwargs)
        except BaseException as error:
            if ended is not None:
                ended[:] = None, error
            raise
        if ended is not None:
            ended[:] = result, None
        return result

    return seen


def _seen_async(function: Any) -> Any:
    """The coroutine function, which notes how it ended."""

    @functools.wraps(function)
    async def seen(*args: Any, **kwargs: Any) -> Any:
        ended = _ended.get()
        try:
            if isinstance(ended, _Timed):
                with ended:
                    result = await function(*args, **kwargs)
            else:
                result = await function(*args, **kwargs)
        except BaseException as error:
            if ended is not None:
                ended[:] = None, error
            raise
        if ended is not None:
            ended[:] = result, None
        return result

    return seen


def _theirs(error: BaseException, ended: list[Any]) -> bool:
    """Whether it is the user's to see; else it is a failure of our own.

    It is not raised here: a frame that raises what it has in a variable is part of a circle, which
    would keep all callers' variables alive until the next garbage collection.
    """
    if ended and ended[1] is error:
        return True
    return isinstance(error, GeneratorExit) or interrupted(error) or cancelled(error)


def _hand_on(outcome: list[Any]) -> Any:
    result, error = outcome
    outcome.clear()
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # see `_theirs`
