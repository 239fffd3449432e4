"""Who may speak to the app: a browser on this machine that was given the token."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from bokeh.util.token import get_token_payload

from serving import running
from stageprof.app import served
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import UsageError
from stageprof_ui.guard import HEADERS, cookie, refusal
from stageprof_ui.server import App

PORT, TOKEN = 5006, "right"
OURS = "127.0.0.1:5006"


@pytest.mark.parametrize(
    ("host", "origin", "sent", "let_in"),
    [
        (OURS, None, TOKEN, True),
        ("localhost:5006", None, TOKEN, True),
        (OURS, f"http://{OURS}", TOKEN, True),
        (OURS, "http://localhost:5006", TOKEN, True),
        (OURS, None, None, False),
        (OURS, None, "wrong", False),
        (OURS, None, "", False),
        ("evil.example", None, TOKEN, False),
        ("evil.example:5006", "http://evil.example:5006", TOKEN, False),
        ("127.0.0.1", None, TOKEN, False),
        ("127.0.0.1:5006.evil.example", None, TOKEN, False),
        ("", None, TOKEN, False),
        (OURS, "http://evil.example", TOKEN, False),
        (OURS, "null", TOKEN, False),
        (OURS, "http://127.0.0.1:5007", TOKEN, False),
        (OURS, f"https://{OURS}", TOKEN, False),
    ],
)
def test_only_the_right_name_page_and_token_are_let_in(
    host: str, origin: str | None, sent: str | None, let_in: bool
) -> None:
    """B7, T19, T20: the rule itself; tests/reliability/test_web_access.py asks the server."""
    why = refusal(host=host, origin=origin, sent=sent, token=TOKEN, port=PORT)
    assert (why == "") == let_in


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_at_port_80_the_name_comes_without_it(name: str) -> None:
    """Browsers leave out the port that is HTTP's own, and others may name it."""
    for host in (name, f"{name}:80"):
        for origin in (None, f"http://{name}", f"http://{name}:80"):
            assert not refusal(host=host, origin=origin, sent=TOKEN, token=TOKEN, port=80)
    assert refusal(host="evil.example", origin=None, sent=TOKEN, token=TOKEN, port=80)
    assert refusal(host=name, origin="http://evil.example", sent=TOKEN, token=TOKEN, port=80)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app over a small recording, running."""
    from benchmarks.generate import generate

    path = tmp_path_factory.mktemp("app") / "small.stageprof"
    generate(path, tasks=200)
    with running(served(Recording.open(Path(path)))) as app:
        yield app


def ask(app: App, path: str = "/", **headers: str) -> http.client.HTTPResponse:
    """What the app answers; a header None is not sent."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.body = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_without_the_token_nothing_is_told(app: App) -> None:
    for path in ("/", "/ws", "/static/js/bokeh.min.js", "/autoload.js", "/../../etc/passwd"):
        answer = ask(app, path)
        assert answer.status == 403
        assert len(answer.body) < 200  # type: ignore[attr-defined]


def test_the_token_goes_from_the_address_into_a_cookie(app: App) -> None:
    """T20: which no script reads and no other site sends."""
    answer = ask(app, app.url.partition(str(app.port))[2])
    kept = answer.headers["Set-Cookie"]
    assert answer.status == 302
    assert answer.headers["Location"] == "/"
    assert kept.startswith(cookie(app.port))
    assert "HttpOnly" in kept
    assert "SameSite=Strict" in kept
    page = ask(app, "/", Cookie=kept.partition(";")[0])
    assert page.status == 200
    assert b"stageprof" in page.body  # type: ignore[attr-defined]


def test_no_page_holds_the_token(app: App) -> None:
    """T20: nor any other cookie of this machine, which Bokeh keeps in what its scripts read."""
    token = app.url.partition("=")[2]
    page = ask(app, "/", Cookie=f"{cookie(app.port)}={token}; other=secret-of-another-app")
    text = page.body.decode()  # type: ignore[attr-defined]
    [kept] = re.findall(r'"token":\s*"([^"]+)"', text)
    session = json.dumps(get_token_payload(kept))
    assert "headers" in session
    for held in (text, session):
        assert token not in held
        assert "secret-of-another-app" not in held


@pytest.mark.parametrize("path", ["//[", "http://[x/", "/?token=%ff", "/?token=a;b&&=", "*"])
def test_what_makes_no_sense_is_refused_without_a_word_on_the_terminal(
    app: App, path: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", app.port), timeout=20) as line:
        host = f"Host: 127.0.0.1:{app.port}"
        line.sendall(f"GET {path} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 403 ")
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize("path", ["//evil.example", "////evil.example", "/nothing"])
def test_the_token_leads_to_no_other_site(app: App, path: str) -> None:
    answer = ask(app, f"{path}?{app.url.partition('?')[2]}")
    assert answer.headers["Location"] == "/"


def test_every_answer_says_what_the_page_may_do(app: App) -> None:
    for answer in (ask(app), ask(app, app.url.partition(str(app.port))[2])):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


def test_another_site_gets_nothing_with_the_right_cookie(app: App) -> None:
    token = f"{cookie(app.port)}={app.url.partition('=')[2]}"
    assert ask(app, Cookie=token, Origin="http://evil.example").status == 403
    assert ask(app, Cookie=token, Host="evil.example").status == 403


def test_a_port_in_use_is_said_in_one_line(app: App, tmp_path: Path) -> None:
    del tmp_path
    with pytest.raises(UsageError, match=f"port {app.port} cannot be used"):
        App(lambda: None, app.port)


def test_it_listens_on_this_machine_only(app: App) -> None:
    """T20: on no other interface."""
    import psutil

    mine = [c for c in psutil.Process().net_connections("tcp") if c.laddr.port == app.port]
    assert {c.laddr.ip for c in mine} == {"127.0.0.1"}


def test_what_a_browser_is_started_with_opens_the_app_once(app: App) -> None:
    """For whoever else uses the machine sees the arguments of every process."""
    ticket = app.ticket()
    assert ticket != app.url
    path = ticket.partition(str(app.port))[2]
    answers = [asked(app, path) for _ in range(2)]
    assert answers == [302, 403]
    assert asked(app, app.url.partition(str(app.port))[2]) == 302


def asked(app: App, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=30)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status
