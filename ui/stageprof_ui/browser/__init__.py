"""What runs in the browser: our own small script, the page's frame and its style.

One script for the server, the static report and the notebook; it is never fetched, always inline.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from stageprof_ui.palette import SEVERITY_COLOURS, STAGE_COLOURS

_HERE: Final = Path(__file__).parent
#: In the order in which they need each other.
_SCRIPTS: Final = (
    "words", "boxes", "failed", "picture", "turns", "selection", "drawing", "far", "story",
    "curves", "icicle", "live", "page", "paper", "app",
)  # fmt: skip


@cache
def body() -> str:
    """All our scripts as the body of a function that returns what callbacks use."""
    scripts = ((_HERE / f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    return '"use strict";\n' + "\n".join(scripts)


def script() -> str:
    """The same for a page, which puts it on the window as `stageprof`."""
    return f"window.stageprof ??= (() => {{\n{body()}\n}})();"


#: What a callback begins with: where no page holds the script (a notebook), `library` does.
PRELUDE: Final = "const S = (window.stageprof ??= new Function(library.data.code[0])());\n"


@cache
def page_style() -> str:
    """The style sheet of a page: colours of both themes, the frame, and what views are made of."""
    return _theme() + _sheet("page") + _sheet("view")


@cache
def view_style() -> str:
    """That of a view, which has a tree of its own; its colours are those of the page around it."""
    return _sheet("view")


@cache
def table_style() -> str:
    """What a table needs beside that."""
    return _sheet("table")


@cache
def notebook_style() -> str:
    """That of views in a notebook: in the light theme, on a ground of their own.

    A notebook may be light or dark, and pictures cannot follow it: their text is drawn, not styled.
    """
    return _theme().replace(":root", ":host") + _sheet("notebook") + _sheet("view")


def _theme() -> str:
    """The colours of both themes: those of stages and severities are the palette's."""
    light = [(name, pair[0]) for name, pair in SEVERITY_COLOURS.items()]
    dark = [(name, pair[1]) for name, pair in SEVERITY_COLOURS.items()]
    both = _variables(":root", [*STAGE_COLOURS.items(), *light])
    return both + _variables(':root[data-theme="dark"]', dark) + _sheet("theme")


def _variables(selector: str, colours: Iterable[tuple[str, str]]) -> str:
    """A rule that gives each colour the name by which style sheets ask for it."""
    named = " ".join(f"--sp-{name}: {colour};" for name, colour in colours)
    return f"{selector} {{ {named} }}\n"


def _sheet(name: str) -> str:
    return (_HERE / f"{name}.css").read_text("utf-8")


@cache
def frame() -> str:
    """The page around the views, as a Jinja template."""
    return (_HERE / "page.html").read_text("utf-8")
