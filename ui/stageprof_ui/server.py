"""Serves the app on this machine only, to whoever has the token that it prints."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from panel.io.server import get_server
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

from stageprof_runtime.errors import UsageError
from stageprof_ui.guard import guard

ADDRESS: Final = "127.0.0.1"


class App:
    """The app on a port of this machine.

    Args:
        page: makes the page for each browser that opens it.
        port: where; 0 takes a free one.

    Raises:
        UsageError: the port is in use.
    """

    def __init__(self, page: Callable[[], Any], port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._once: set[str] = set()
        _free(port)
        # In a thread of its own, for a server takes the loop that runs where it is made: in a
        # notebook that is the kernel's.
        with ThreadPoolExecutor(1, "stageprof-app") as pool:
            self._server = pool.submit(_made, page, port).result()
        self.port = int(self._server.port or 0)
        guard(self._server._tornado, self._token, self.port, self._once)

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return self._address(self._token)

    def ticket(self) -> str:
        """An address that opens it once: all who use this machine see a browser's arguments."""
        once = secrets.token_urlsafe(24)
        self._once.add(once)
        return self._address(once)

    def _address(self, token: str) -> str:
        return f"http://{ADDRESS}:{self.port}/?token={token}"

    def run(self, *, browser: bool = False) -> None:
        """Serve until `stop` or Ctrl-C; where a loop runs already, as in a kernel, beside it."""
        if browser:
            threading.Thread(target=webbrowser.open, args=(self.ticket(),), daemon=True).start()
        if asyncio._get_running_loop() is None:
            self._serve()
            return
        beside = threading.Thread(target=self._serve, name="stageprof-app")
        beside.start()
        try:
            beside.join()
        finally:
            self.stop()
            beside.join()

    def _serve(self) -> None:
        # What it does every so often is done on the loop that it begins on.
        self._server.io_loop.add_callback(self._server.start)
        try:
            self._server.io_loop.start()
        finally:
            self._server.stop()

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._server.io_loop.add_callback(self._server.io_loop.stop)


def _made(page: Callable[[], Any], port: int) -> Any:
    loop: Any = IOLoop(make_current=True)
    loop.asyncio_loop.set_exception_handler(_told)
    return get_server(
        # A function, for what is called but is none (a partial one, say) Panel would show.
        {"/": lambda: page()},  # noqa: PLW0108
        port=port,
        address=ADDRESS,
        loop=loop,
        start=False,
        show=False,
        title="stageprof",
        # A page holds what Bokeh keeps of the request for it, where its scripts may read it.
        include_cookies=[],
        exclude_headers=["Cookie"],
    )


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody caught, but not that a browser had gone before it was answered.

    What Panel writes to one that has gone fails in a task that nobody waits for any more.
    """
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


def _free(port: int) -> None:
    """Nothing if a port can be had; asked before the server is made, which would leave much behind.

    Raises:
        UsageError: it cannot.
    """
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((ADDRESS, port))
        except OSError as error:
            raise UsageError(
                f"port {port} cannot be used ({error.strerror})",
                expected="a free one",
                do="choose another with --port, or leave it out",
            ) from error
