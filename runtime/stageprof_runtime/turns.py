"""When a coroutine had its event loop: between two of these turns the loop does other things."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from stageprof_runtime.clock import now_ns, thread_ns

T = TypeVar("T")

#: What takes less delays nobody.
LONG_NS: Final = 1_000_000


@types.coroutine
def in_turns(
    coroutine: Coroutine[Any, Any, T], tell: Callable[[int, int, int], None]
) -> Generator[Any, Any, T]:
    """Await a coroutine, as `await` itself does, and tell of each long turn.

    That is from when to when, and how long it had a processor, ns.

    What is sent and thrown in reaches it, and what it yields, returns and raises comes out
    (PEP 380). `tell` must not raise.
    """
    resume: Callable[[], Any] = functools.partial(coroutine.send, None)
    while True:
        cpu, start = thread_ns(), now_ns()
        try:
            awaited = resume()
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            stop = now_ns()
            if stop - start >= LONG_NS:
                tell(start, stop, thread_ns() - cpu)
        try:
            sent = yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:
            resume = functools.partial(coroutine.throw, error)
        else:
            resume = functools.partial(coroutine.send, sent)
