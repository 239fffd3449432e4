"""A real browser for the tests that look at pages: one for each process that runs tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

import clusters

#: Where Debian puts it, and what others call it.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)

#: Nothing is asked of anybody but this machine: no updates, no background requests.
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, started once; its processes may stay from test to test."""
    if not CHROMIUM:
        pytest.skip("NO BROWSER: install Chromium (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    before = {p.pid for p in psutil.Process().children()}
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        clusters.shared.update(p.pid for p in psutil.Process().children() if p.pid not in before)
        yield opened
        opened.close()
