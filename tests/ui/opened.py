"""Recordings that a thread opens, for tests: asked for until they are there."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stageprof_ui.shelf import Shelf
from stageprof_ui.store import Store


def idle() -> None:
    """Wait until no thread opens any."""
    for thread in threading.enumerate():
        if thread.name == "stageprof-open":
            thread.join(30)


def asked(ask: Callable[[], Store | None]) -> Store:
    """What comes of asking again and again."""
    for _ in range(100):
        if (found := ask()) is not None:
            return found
        idle()
    raise AssertionError("it was never opened")


def opened(shelf: Shelf, name: str) -> Store:
    """The recording of a name, without its pages."""
    return asked(lambda: shelf.made(name, lambda _: None))
