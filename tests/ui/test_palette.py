"""Each colour is written once, and every style sheet finds those that it asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stageprof_ui
from stageprof_ui import browser
from stageprof_ui.palette import SEVERITY_COLOURS, STAGE_COLOURS

PACKAGE = Path(stageprof_ui.__file__).parent
#: The variables of a rule by its selector.
_RULE = re.compile(r"(:root[^{]*?)\s*{([^}]*)}")


def variables(dark: bool) -> dict[str, str]:
    """The variables of a theme, as a browser has them: later ones over earlier ones."""
    found: dict[str, str] = {}
    for selector, body in _RULE.findall(browser.page_style()):
        if dark or "dark" not in selector:
            found |= dict(re.findall(r"--sp-([\w-]+): (#\w+);", body))
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_stages_and_severities_have_the_colours_of_the_palette(dark: bool) -> None:
    found = variables(dark)
    assert {str(stage): found[stage] for stage in STAGE_COLOURS} == STAGE_COLOURS
    assert {s: found[s] for s in SEVERITY_COLOURS} == {
        s: pair[dark] for s, pair in SEVERITY_COLOURS.items()
    }


def test_no_style_sheet_repeats_a_colour_of_the_palette() -> None:
    pairs = [colour for pair in SEVERITY_COLOURS.values() for colour in pair]
    sheets = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.css"))
    assert [c for c in (*STAGE_COLOURS.values(), *pairs) if c in sheets] == []


def test_every_colour_that_is_asked_for_is_there() -> None:
    files = [path for kind in ("css", "html", "js", "py") for path in PACKAGE.rglob(f"*.{kind}")]
    asked = {name for f in files for name in re.findall(r"var\(--sp-(\w+)\)", f.read_text("utf-8"))}
    made = set(re.findall(r"--sp-(\w+):", "".join(f.read_text("utf-8") for f in files)))
    assert asked - variables(dark=False).keys() - made == set()
