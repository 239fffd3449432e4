"""Who may speak to the app: a browser on this machine that was given the token.

A page that somebody else's site opens can reach every port of this machine; so the name under
which we are asked is checked (against names that point here only for a moment), then where the
asking page comes from, then the token.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from tornado.httputil import HTTPHeaders, HTTPServerRequest, parse_cookie
from tornado.web import OutputTransform, RequestHandler

from stageprof_ui import policy

#: Sent with every answer; the policy of a page allows its own scripts, too.
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": policy.allowing(policy.APP, ""),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

#: The port that browsers leave out of the name under which they ask.
_HTTP: Final = 80


def cookie(port: int) -> str:
    """The name of the cookie that holds the token; apps on several ports do not disturb another."""
    return f"stageprof-{port}"


def refusal(*, host: str, origin: str | None, sent: str | None, token: str, port: int) -> str:
    """Why a request is refused; "" if it is not.

    Args:
        host: its Host header.
        origin: its Origin header, None without one.
        sent: the token that it brought.
        token: the right one.
        port: where we listen.
    """
    names = {f"127.0.0.1:{port}", f"localhost:{port}"}
    if port == _HTTP:
        names |= {"127.0.0.1", "localhost"}
    if host not in names:
        return f"this is not {host[:80]}; open the address that stageprof printed"
    if origin is not None and origin not in {f"http://{name}" for name in names}:
        return "asked by another site"
    if sent is None or not hmac.compare_digest(sent.encode(), token.encode()):
        return "the token is missing or wrong; open the address that stageprof printed"
    return ""


def guard(application: Any, token: str, port: int, once: set[str]) -> None:
    """Let only those in whom `refusal` does not refuse.

    Args:
        application: Tornado's.
        token: the right one.
        port: where we listen.
        once: others that are right once, and are taken out of the set then.
    """
    inner = application.find_handler

    def find_handler(request: HTTPServerRequest, **more: Any) -> Any:
        headers = request.headers
        asked = parse_qs(request.query).get("token", [None])[0]
        kept = parse_cookie(headers.get("Cookie", "")).get(cookie(port))
        if asked in once:
            once.discard(asked)
            asked = token
        why = refusal(
            host=headers.get("Host", ""),
            origin=headers.get("Origin"),
            sent=asked or kept,
            token=token,
            port=port,
        )
        if why:
            return application.get_handler_delegate(request, Refused, {"why": why})
        if asked:
            arguments = {"name": cookie(port), "token": token}
            return application.get_handler_delegate(request, Welcome, arguments)
        return inner(request, **more)

    application.find_handler = find_handler
    application.transforms.append(_headed())


def _headed() -> Callable[[HTTPServerRequest], OutputTransform]:
    class Headed(OutputTransform):
        def transform_first_chunk(
            self,
            status_code: int,
            headers: HTTPHeaders,
            chunk: bytes,
            finishing: bool,  # noqa: ARG002, FBT001
        ) -> tuple[int, HTTPHeaders, bytes]:
            for name, value in HEADERS.items():
                headers[name] = value
            if headers.get("Content-Type", "").startswith("text/html"):  # sent in one piece
                page = policy.plain(chunk.decode("utf-8", "replace"))
                headers["Content-Security-Policy"] = policy.allowing(policy.APP, page)
                chunk = page.encode()
                headers["Content-Length"] = str(len(chunk))
            return status_code, headers, chunk

    return Headed


class Refused(RequestHandler):
    """Says why, and nothing else."""

    def initialize(self, why: str) -> None:
        """Keep the reason."""
        self.why = why

    def prepare(self) -> None:
        """Answer whatever was asked."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"stageprof: {self.why}\n")


class Welcome(RequestHandler):
    """Puts the token into a cookie and out of the address."""

    def initialize(self, name: str, token: str) -> None:
        """Keep the cookie."""
        self.name, self.token = name, token

    def get(self) -> None:
        """Come again without the token in the address."""
        self.set_cookie(self.name, self.token, httponly=True, samesite="Strict")
        self.redirect("/")  # not to the path that was asked for, which may begin as a site's name
