"""Who may speak to the app: every combination of a page that asks, a name and a token."""

from __future__ import annotations

import base64
import http.client
import itertools
import re
from collections.abc import Iterator
from typing import Final

import panel as pn  # noqa: TID253 (conftest.py leaves this file out without it)
import pytest

from serving import running
from stageprof_ui.guard import HEADERS, cookie
from stageprof_ui.server import App

#: Where the asking page is from; None: it is no page that asks.
ORIGINS: Final = (
    None, "null", "http://evil.example", "http://evil.example:PORT", "http://127.0.0.1:PORT",
    "http://localhost:PORT",
)  # fmt: skip
HOSTS: Final = ("127.0.0.1:PORT", "localhost:PORT", "evil.example:PORT", "127.0.0.1")
TOKENS: Final = ("none", "wrong", "right")
METHODS: Final = ("GET", "WS")

#: Those that are let in: of this machine, by its own pages or by none, with the token. Bokeh takes
#: no WebSocket of a page that was opened as 127.0.0.1 and asks for localhost; no browser does that.
OURS: Final = {
    (origin, host, "right", method)
    for origin in (None, "http://127.0.0.1:PORT", "http://localhost:PORT")
    for host in HOSTS[:2]
    for method in METHODS
} - {("http://127.0.0.1:PORT", "localhost:PORT", "right", "WS")}


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    """The server of the app, with a page that costs little."""
    with running(App(lambda: pn.Column("# A page"))) as app:
        yield app


def asked(app: App, origin: str | None, host: str, token: str, method: str) -> tuple[int, str]:
    """The status of an answer, and its policy."""
    right = app.url.partition("=")[2]
    headers = {"Host": host.replace("PORT", str(app.port))}
    if origin is not None:
        headers["Origin"] = origin.replace("PORT", str(app.port))
    if token != "none":
        headers["Cookie"] = f"{cookie(app.port)}={right if token == 'right' else right[::-1]}"
    if method == "WS":
        headers |= {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(b"sixteen bytes of").decode(),
            "Sec-WebSocket-Protocol": "bokeh, none",
        }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    connection.request("GET", "/ws" if method == "WS" else "/", headers=headers)
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers["Content-Security-Policy"]


def test_only_this_machine_with_the_token_is_let_in(app: App) -> None:
    """B7, T19, T20: 6 origins x 4 hosts x 3 tokens x {GET, WS} = 144 requests, 11 of them ours."""
    requests = list(itertools.product(ORIGINS, HOSTS, TOKENS, METHODS))
    assert len(requests) == 144
    let_in = set()
    for request in requests:
        status, policy = asked(app, *request)
        policy = re.sub(r" 'sha256-[^']+'", "", policy or "")  # those of the page's own scripts
        assert policy == HEADERS["Content-Security-Policy"] or status == 101, request
        if status != 403:
            assert status == (101 if request[3] == "WS" else 200), request
            let_in.add(request)
    assert let_in == OURS


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"])
def test_no_other_method_goes_round_the_guard(app: App, method: str) -> None:
    """B7: whatever is asked, without the token the answer is no."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    connection.request(method, "/", headers={"Host": f"127.0.0.1:{app.port}"})
    assert connection.getresponse().status == 403
    connection.close()


def test_the_token_is_in_no_log(
    app: App, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """T20: neither in what the server logs nor in what it prints."""
    token = app.url.partition("=")[2]
    with caplog.at_level("DEBUG"):
        connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
        for path in (f"/?token={token}", f"/nothing?token={token}"):
            connection.request("GET", path)
            connection.getresponse().read()
        connection.request("GET", "/nothing", headers={"Cookie": f"{cookie(app.port)}={token}"})
        assert connection.getresponse().read()
        connection.close()
    assert token not in caplog.text
    assert token not in "".join(capfd.readouterr())
