"""What a recording may hold is written down: a table or an option that is new must be, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from stageprof_collectors.storage.header import describe
from stageprof_runtime.event import TABLES

PAGE = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text()
HEADER = PAGE[PAGE.index("| header |") :].partition("\n")[0]


@pytest.mark.parametrize("table", TABLES.values())
def test_the_page_says_what_each_table_holds(table: str) -> None:
    assert f"`{table}`" in PAGE


@pytest.mark.parametrize("name", describe(""))
def test_the_page_says_what_the_header_holds(name: str) -> None:
    said = {"machine": "platform", "started": "when it began", "cpus": "CPUs"}.get(name, name)
    assert said.casefold() in HEADER.casefold()
