"""Pages run the scripts that they were made with, and none that a recording could bring."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.request import url2pathname

import pytest

from stageprof_ui import policy
from ui.conftest import Watched

_TRY = (
    "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    "document.body.append(s); return window.ran ?? 0; }"
)


def named(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize(
    ("page", "runs"),
    [
        ("<script>a</script>", ["a"]),
        ("<SCRIPT type='text/javascript'>a</SCRIPT><script type=module>b</script>", ["a", "b"]),
        ('<script type="text/javascript" id="x">a\r\nb</script>', ["a\nb"]),
        ('<script type="application/json">{"a": 1}</script>', []),
        ('<script src="static/js/bokeh.min.js"></script>', []),
        ("<script>a</script><script>a</script>", ["a"]),
    ],
)
def test_the_scripts_of_a_page_are_named_and_its_data_are_not(page: str, runs: list[str]) -> None:
    assert policy.hashes(page) == [named(text) for text in runs]


def test_a_page_without_scripts_may_run_none() -> None:
    assert "script-src 'unsafe-eval';" in policy.allowing(policy.REPORT, "<p>")


def test_a_report_names_its_scripts(reported: Callable[[int], str]) -> None:
    text = Path(url2pathname(reported(10_000)[7:])).read_text("utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found
    sources = re.search(r"script-src ([^;]*);", found[1])
    assert sources
    assert "'unsafe-inline'" not in sources[1]
    assert set(policy.hashes(text)) | {"'unsafe-eval'"} == set(sources[1].split())


def test_a_report_runs_no_script_but_its_own(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    """All pages draw without a violation; a script that is put in does not run, and is reported."""
    page = watched.open(reported(10_000))
    for link in page.locator("[data-sp-page]").all():
        link.click()
    assert watched.wrong == []
    assert page.evaluate(_TRY) == 0
    assert [text for text in watched.wrong if "Content Security Policy" in text]
    watched.wrong.clear()
