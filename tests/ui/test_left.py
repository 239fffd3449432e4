"""A page that its reader has left before the app has answered."""

from __future__ import annotations

import asyncio
import threading

import panel as pn
import pytest
from tornado.websocket import WebSocketClosedError

from serving import running
from stageprof_ui.server import App


@pytest.mark.parametrize(
    ("error", "told"), [(WebSocketClosedError(), False), (ZeroDivisionError("x"), True)]
)
def test_that_a_browser_has_gone_is_no_error_and_all_else_is_told(
    caplog: pytest.LogCaptureFixture, error: Exception, *, told: bool
) -> None:
    """Nobody waits for what is written to one that has gone: it was a traceback for each."""
    app, done = App(lambda: pn.pane.HTML("here")), threading.Event()

    def fail() -> None:
        context = {"message": "Task exception was never retrieved", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
        done.set()

    with running(app):
        app._server.io_loop.add_callback(fail)
        assert done.wait(30)
    assert ("never retrieved" in caplog.text) is told
