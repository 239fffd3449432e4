"""Guards around hooks: nothing leaves a hook, and a hook that costs too much is put away.

Everything of ours that Dask or the user's code calls is behind one of five guards:

* `guard`: a hook called for every task. Within a time budget; over it, it is first sampled (one
  call in `STRIDE`), then disabled.
* `hook`: any other method that Dask calls.
* `quietly`: a coroutine of ours that Dask's loop runs or the user's code awaits.
* `shield` (in `shield.py`): a function of Dask's or the user's that a probe has wrapped.
* `caught`: the same where it is called for every task and the wrapper is written with care.

They catch everything, `BaseException` included: out of a scheduler or worker hook `CancelledError`
or `SystemExit` loses the cluster. After `FAILURES` failures a hook is disabled. What happened is
kept in `Watch`es and shipped with every batch.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.interrupts import interrupted

logger = logging.getLogger("stageprof")

#: Failures after which a hook is disabled.
FAILURES = 10
#: Share of the time since the guard began that one hook may use.
BUDGET = 0.02
#: A hook may always use this much, or short runs would trip over one unlucky call.
GRACE_NS = 100_000_000
#: One call in 16 is timed; reading the clock at each would double a hook's cost.
TIMED = 16
#: A call that took longer than this, ns, and than the one that was timed before, counts as this:
#: its thread had to wait for the GIL or a processor, which says nothing of the 15 calls that it
#: stands for. A hook that waits itself does so again.
UNUSUAL_NS = 1_000_000
#: Of a hook over its budget, one call in 10 goes on.
STRIDE = 10
#: A wrapper cannot be sampled, and some do most of their work in a run's first second: one is put
#: away that takes a fifth of the time, and a second at least.
WRAPPER_BUDGET = 0.2
WRAPPER_GRACE_NS = 1_000_000_000
#: As `UNUSUAL_NS`, where two calls before it took no longer: most take some microseconds, and some
#: wait for a processor.
WRAPPER_UNUSUAL_NS = 50_000
#: Of wrappers without a shield one call in 64 is timed, for the same reason as above.
SELDOM = 64

#: Hooks of a process whose failure is logged; the recording tells of them all.
LOGGED = 2

#: Those whose failure was logged since a session began here.
logged: Final[list[str]] = []
#: Failures in this process that no batch has told of yet: hook -> how many.
untold: Final[dict[str, int]] = {}
#: A finalizer or a signal's handler may run while a thread tells, and come here on that thread.
_telling = threading.RLock()


class Watch:
    """What is known of one hook: calls, estimated own time, failures, and whether it is off."""

    def __init__(self, name: str, *, wrapper: bool = False, limited: bool = True) -> None:
        self.name = name
        #: whether what a wrapper takes counts as its own; it has another budget, or waits, if not
        self.limited = limited
        #: what the latest calls took that `took` was told of, ns
        self._latest: tuple[int, int] = (0, 0)
        self._budget = WRAPPER_BUDGET if wrapper else BUDGET
        self._grace_ns = WRAPPER_GRACE_NS if wrapper else GRACE_NS
        self.wrapper = wrapper
        self.calls = 0
        self.failures = 0
        self.skipped = 0
        self.timed_ns = 0
        self.timed = 0
        #: what it took beside that, which no budget is for: a thread of ours to wake, a process
        self.beside_ns = 0
        self.latest_ns = sys.maxsize
        self.sampled = False
        self.disabled = ""
        self.began = now_ns()
        #: when what it watches was taken away; 0 until then
        self.ended = 0

    @property
    def spent_ns(self) -> int:
        """Estimated time in the hook so far, from the calls that were timed."""
        done = self.calls - self.skipped
        return self.timed_ns * done // self.timed if self.timed else 0

    def failed(self, error: BaseException) -> None:
        """Count a failure; say so once, and disable the hook at the tenth.

        Raises nothing, but what interrupts the user meanwhile.
        """
        self.failures += 1
        try:
            with _telling:
                untold[self.name] = untold.get(self.name, 0) + 1
            if self.failures >= FAILURES and not self.disabled:
                self.disabled = f"failed {self.failures} times, last: {error!r}"[:200]
            if self.failures == 1 and len(logged) < LOGGED:
                logged.append(self.name)
                # As text: a log that keeps the error would keep the user's data in its frames.
                why = repr(error)[:200]
                logger.warning("stageprof: hook %s failed: %s (the run goes on)", self.name, why)
        except BaseException as late:  # no memory or stack is left to tell it with: it is counted
            if interrupted(late):
                raise

    def called(self, ns: int) -> None:
        """Add one timed call of many that were not."""
        usual, self.latest_ns = max(self.latest_ns, UNUSUAL_NS), ns
        self.measured(min(ns, usual))

    def measured(self, ns: int) -> None:
        """Add one timed call, and fall back if the budget is gone."""
        self.timed += 1
        self.timed_ns += ns
        self._judge()

    def _judge(self) -> None:
        now = now_ns()
        if self.spent_ns < max(self._grace_ns, self._budget * (now - self.began)):
            return
        if self.sampled or self.wrapper:
            self.disabled = "over its time budget"
            return
        # Begin anew: what is sampled gets a chance of its own.
        self.sampled = True
        self.began, self.calls, self.skipped, self.timed, self.timed_ns = now, 0, 0, 0, 0

    def took(self, ns: int, calls: int = 1) -> None:
        """Add what a wrapper took beside what it wraps, in a call that stands for so many.

        No call counts for more than those before it took, see `WRAPPER_UNUSUAL_NS`.
        """
        if not self.limited:
            return
        usual, self._latest = max(WRAPPER_UNUSUAL_NS, min(self._latest)), (self._latest[1], ns)
        self.timed += calls
        self.timed_ns += max(0, min(ns, usual)) * calls
        if self.timed_ns >= self._grace_ns:
            self._judge()


class Watches(dict[str, Watch]):
    """The watches of one role's hooks, by method; made when first asked for."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def __missing__(self, name: str) -> Watch:
        return self.setdefault(name, Watch(f"{self._role}.{name}"))


def failures() -> dict[str, int]:
    """Failures since this was last asked, as drops by reason; each is told to one asker only."""
    with _telling:
        told = {f"hook failed: {name}": n for name, n in untold.items()}
        untold.clear()
    return told


def guard(hook: Callable[..., None], watch: Watch) -> Callable[..., None]:
    """A hook that returns None, raises nothing and keeps within its budget."""

    def guarded(*args: Any, **kwargs: Any) -> None:
        if watch.disabled:
            return
        watch.calls = calls = watch.calls + 1
        if watch.sampled and calls % STRIDE:
            watch.skipped += 1
            return
        try:
            if calls % TIMED and not watch.sampled:
                hook(*args, **kwargs)
                return
            start = now_ns()
            hook(*args, **kwargs)
            watch.called(now_ns() - start)
        except BaseException as error:  # see the module's docstring
            watch.failed(error)

    return guarded


def attempt(watch: Watch, doing: Callable[..., Any], *args: Any) -> None:
    """Call something of ours where the user's code runs; only what interrupts them gets out."""
    try:
        doing(*args)
    except BaseException as error:  # see the module's docstring
        caught(error, watch)


def attempt_each(watch: Watch, steps: Sequence[Callable[[], None]]) -> None:
    """The same, one after another; who interrupts one has the others taken all the same."""
    for i, step in enumerate(steps):
        try:
            attempt(watch, step)
        except BaseException:
            attempt_each(watch, steps[i + 1 :])
            raise


def caught(error: BaseException, watch: Watch) -> None:
    """Count what our code in an unshielded wrapper raised; what interrupts the user goes on."""
    if interrupted(error):
        raise error
    watch.failed(error)


def hook(method: Callable[..., None]) -> Callable[..., None]:
    """A method that Dask calls, of an object with `watches`: whatever it raises goes no further."""
    name = method.__name__

    @functools.wraps(method)
    def quiet(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            if not self.watches[name].disabled:
                method(self, *args, **kwargs)
        except BaseException as error:  # see the module's docstring
            self.watches[name].failed(error)

    return quiet


def _after_fork() -> None:
    """Another thread of the parent may have been telling; what it had to tell is the parent's."""
    global _telling  # noqa: PLW0603 (nobody is left who could let go of the old one)
    _telling = threading.RLock()
    untold.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def quietly(doing: Awaitable[Any], watch: Watch) -> None:
    """Await something of ours; only a real cancellation of the task around it gets out."""
    try:
        await doing
    except GeneratorExit:
        raise
    except BaseException as error:
        if cancelled(error):
            raise
        watch.failed(error)


def cancelled(error: BaseException) -> bool:
    """Whether an error that came out of a coroutine is the cancellation of its own task."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0
