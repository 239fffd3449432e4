"""The app is served where a loop runs already, as in the kernel of a notebook."""

from __future__ import annotations

import asyncio
import threading
from urllib.request import HTTPCookieProcessor, build_opener

import panel as pn

from stageprof_ui.server import App


def test_it_serves_beside_a_loop_that_runs_and_ends_when_it_is_told_to() -> None:
    """It raised "another loop is running", after it had said which page to open."""
    app = App(lambda: pn.pane.HTML("here"))
    told: list[int] = []

    def look() -> None:
        opener = build_opener(HTTPCookieProcessor())  # the token comes back as a cookie
        try:
            with opener.open(app.url) as answer:
                told.append(answer.status)
        finally:
            app.stop()

    async def kernel() -> None:
        looking = threading.Thread(target=look)
        looking.start()
        app.run()
        looking.join()

    asyncio.run(kernel())
    assert told == [200]
