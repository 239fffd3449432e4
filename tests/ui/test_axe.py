"""axe-core finds nothing serious on any page, in either theme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

axe_core = pytest.importorskip("axe_playwright_python.sync_playwright")

#: Tabulator calls itself a grid and holds its buttons for pages too; that is not ours to mend.
TABULATORS_OWN = "aria-required-children"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_is_in_the_way_of_those_who_see_or_hear_it_otherwise(
    browser: Any, reported: Callable[[int], str], theme: str
) -> None:
    """Contrast, names of controls, landmarks, headings."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme=theme, bypass_csp=True
    )
    page, wrong = context.new_page(), []
    page.goto(reported(10_000))
    page.wait_for_function("document.documentElement.dataset.stageprofDrawn > 0")
    for link in page.locator("[data-sp-page]").all():
        link.click()
        page.wait_for_timeout(500)  # views are laid out when they are first shown
        found = axe_core.Axe().run(page).response["violations"]
        wrong += [
            (link.get_attribute("data-sp-page"), v["id"], v["nodes"][0]["html"][:200])
            for v in found
            if v["impact"] in ("serious", "critical") and v["id"] != TABULATORS_OWN
        ]
    context.close()
    assert wrong == []
