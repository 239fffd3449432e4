"""Apps that serve while a test asks them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stageprof_ui.server import App


@contextmanager
def running(app: App) -> Iterator[App]:
    """The app, served by a thread that is gone afterwards."""
    thread = threading.Thread(target=app.run, name="app", daemon=True)
    thread.start()
    try:
        yield app
    finally:
        app.stop()
        thread.join(10)
    assert not thread.is_alive()
