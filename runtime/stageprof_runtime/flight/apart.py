"""Waiting on a loop for what a disk may never answer: the process ends all the same.

A thread of the loop's pool would be waited for as the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any


async def apart(doing: Callable[..., Any], *args: Any) -> Any:
    """What a function returns or raises, called on a thread of its own."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Any] = loop.create_future()

    def tell(settle: Callable[[Any], None], what: Any) -> None:
        if not found.done():  # else nobody waits for it any more
            settle(what)

    def run() -> None:
        try:
            told = found.set_result, doing(*args)
        except Exception as error:
            told = found.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=run, name="stageprof-flight-apart", daemon=True).start()
    return await found
