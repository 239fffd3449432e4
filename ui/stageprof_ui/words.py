"""Texts of a recording on their way into HTML: the only place where the app makes any.

Templates escape all that they are given, and what a recording holds goes through `safe` before.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stageprof_collectors.text import safe

#: Characters of a text or a line of code that are shown.
_MOST: Final = 2000


@cache
def _templates() -> Environment:
    loader = PackageLoader("stageprof_ui", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    made.filters["ticked"] = ticked
    return made


def ticked(sentence: str) -> Markup:
    """A sentence whose words between backticks are code; all of it escaped."""
    return Markup(safe(sentence, "sentence", limit=_MOST))  # noqa: S704 (it is escaped there)


def html(template: str, **facts: Any) -> str:
    """A template filled in; every text in `facts` is escaped."""
    return _templates().get_template(f"{template}.html").render(**facts)


def text(value: object) -> str:
    """One line of text of a recording."""
    return safe(value, limit=_MOST)


def code(lines: str) -> str:
    """Code of several lines."""
    return "\n".join(text(line) for line in lines.strip("\n").split("\n"))
