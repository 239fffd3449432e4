"""What a page holds inside itself: scripts, styles and data that cannot break out of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

#: Characters that could end a script element or a line of a script.
_ESCAPED: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def data(value: Any) -> str:
    """A value as JSON that may stand in a script element.

    Raises:
        ValueError: it holds a number that JSON has not (NaN, infinity).
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def digest(text: str) -> str:
    """A text's name in a content security policy: what is in the page may run, and nothing else."""
    hashed = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"


def policy(
    scripts: Iterable[str], styles: Iterable[str], *, evaluates: bool = False, more: str = ""
) -> str:
    """The content security policy of a page with these scripts and styles.

    Args:
        scripts: the text of each script element that runs.
        styles: the text of each style element; none if `more` allows styles.
        evaluates: whether its scripts make functions of texts.
        more: directives beside the usual ones.
    """
    eval_too = ["'unsafe-eval'"] if evaluates else []
    allowed = [f"script-src {' '.join([*map(digest, scripts), *eval_too])}"]
    named = " ".join(map(digest, styles))
    allowed += [f"style-src {named}"] if named else []
    usual = "base-uri 'none'; form-action 'none'; object-src 'none'"
    return "; ".join(filter(None, ("default-src 'none'", *allowed, more, usual)))
