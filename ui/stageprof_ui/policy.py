"""What a page of ours may do: the Content-Security-Policy of the app and of the static report.

A page may run the scripts that stood in it when it was made, each named by its hash, and none that
comes later: that no text of a recording becomes one of them is for those to see to who write the
page. Bokeh makes functions of callbacks, which takes `unsafe-eval`, and it and Panel write styles
into elements, which takes `unsafe-inline` for styles. Nothing is asked of anybody but the app's own
server, and of nobody by a report.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Final

#: Stands in a page for the hashes of its scripts, until they are known.
SCRIPTS: Final = "'sha256-0'"

REPORT: Final = (
    f"default-src 'none'; script-src {SCRIPTS} 'unsafe-eval'; script-src-attr 'none'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'; object-src 'none'"
)
APP: Final = (
    f"default-src 'self'; script-src 'self' {SCRIPTS} 'unsafe-eval'; script-src-attr 'none'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)

_SCRIPT: Final = re.compile(r"<script\b([^>]*)>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)
#: A type that a policy is asked for; a block of data has another.
_RUNS: Final = re.compile(
    r"type=[\"']?(?:text/javascript|module|importmap)?[\"']?(?:\s|$)", re.IGNORECASE
)


#: Panel sends it for views that are modules of their own, of which there is none here. To find out
#: what the browser can, it makes scripts that no hash allows.
_SHIMS: Final = "es-module-shims"


def plain(page: str) -> str:
    """A page without the scripts that it does not need and may not run."""
    return _SCRIPT.sub(lambda script: "" if _SHIMS in script[0][:400] else script[0], page)


def hashes(page: str) -> list[str]:
    """The sources that allow the inline scripts of a page, each once."""
    found = (text for attributes, text in _SCRIPT.findall(page) if _runs(attributes))
    return list(dict.fromkeys(map(_hash, found)))


def _runs(attributes: str) -> bool:
    typed = "type=" in attributes.lower()
    return "src=" not in attributes.lower() and (not typed or bool(_RUNS.search(attributes)))


def _hash(script: str) -> str:
    # A browser hashes what it read, in which every end of a line is one character.
    read = script.replace("\r\n", "\n").replace("\r", "\n")
    return f"'sha256-{b64encode(sha256(read.encode()).digest()).decode()}'"


def allowing(policy: str, page: str) -> str:
    """A policy under which the scripts of a page run, and no other."""
    return policy.replace(f" {SCRIPTS}", "".join(f" {name}" for name in hashes(page)))
