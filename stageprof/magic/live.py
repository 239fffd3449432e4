"""What a cell shows: a line with stage and tasks while it runs, and in its place the card.

In a notebook it is one display, which a thread updates. A plain terminal has its last row for the
line and gets the card printed.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, display

from stageprof.renderers import notebook, terminal
from stageprof.statusline import StatusLine
from stageprof_collectors.storage.collector import Live
from stageprof_collectors.summary import Summary

#: Seconds between two updates of a notebook.
PERIOD_S: Final = 0.5

Look = Callable[[], Live]


class Showing(Protocol):
    """Shows how far a run is from `with` to its end, and in the end what it came to."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def card(self, summary: Summary, notes: tuple[str, ...]) -> None:
        """Show what it came to, once it goes on no more."""

    def gone(self) -> None:
        """Leave nothing of the line, if there was no card."""


def showing(shell: InteractiveShell, look: Look, *, quiet: bool) -> Showing:
    """What suits a shell."""
    if quiet:
        return Quiet()
    if getattr(shell, "kernel", None) is None:
        return Terminal(look)
    # What `%%capture` keeps would hold every state of the line.
    still = isinstance(shell.display_pub, CapturingDisplayPublisher)
    return Notebook(None if still else look)


class Quiet:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def card(self, summary: Summary, notes: tuple[str, ...]) -> None:
        """Nothing."""

    def gone(self) -> None:
        """Nothing is there."""


class Terminal:
    """The last row of the terminal, and then the summary."""

    def __init__(self, look: Look) -> None:
        self._line = StatusLine(look, sys.__stderr__)

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(None, None, None)

    def card(self, summary: Summary, notes: tuple[str, ...]) -> None:
        """Print it."""
        terminal.show(summary, sys.stdout, notes)

    def gone(self) -> None:
        """The row was given back before."""


class Notebook:
    """One display of a notebook."""

    def __init__(self, look: Look | None) -> None:
        self._look = look
        self._start = time.monotonic()
        self._stop = threading.Event()
        self._handle: DisplayHandle | None = None
        self._done = False
        # The kernel knows by its context to which cell an output belongs.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run,), name="stageprof-live", daemon=True
        )

    def __enter__(self) -> Self:
        if self._look is not None:
            self._handle = display(self._line(Live()), raw=True, display_id=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def card(self, summary: Summary, notes: tuple[str, ...]) -> None:
        """Put it in the place of the line."""
        card = notebook.bundle(summary, notes)
        self._done = True
        if self._handle is None:
            display(card, raw=True)
        else:
            self._handle.update(card, raw=True)

    def gone(self) -> None:
        """Empty the display."""
        if self._handle is not None and not self._done:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _run(self) -> None:
        while self._look is not None and not self._stop.wait(PERIOD_S):
            self._update(self._line(self._look()))

    def _update(self, line: dict[str, Any]) -> None:
        try:
            if self._handle is not None:
                self._handle.update(line, raw=True)
        except Exception:  # the notebook is gone; the run is not for it alone
            self._stop.set()

    def _line(self, live: Live) -> dict[str, Any]:
        return notebook.live(live, time.monotonic() - self._start)


__all__ = ["Showing", "showing"]
