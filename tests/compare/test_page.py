"""`--html`: both sides in one file, from disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.generate import generate
from stageprof.cli import main

pytest.importorskip("panel")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two small recordings, the second of which has more tasks."""
    folder = tmp_path_factory.mktemp("page")
    for name, tasks in (("base", 40), ("head", 80)):
        generate(folder / f"{name}.stageprof", tasks=tasks, workers=2, seed=tasks)
    words = (str(folder / "base.stageprof"), str(folder / "head.stageprof"))
    assert main(["compare", *words, "--html", str(folder / "page.html")]) == 1
    return folder / "page.html"


def test_the_page_says_what_was_found_and_names_both(page: Path) -> None:
    """With the pages of the candidate; there is no server to show those of the baseline."""
    text = page.read_text("utf-8")

    assert "Worse than the baseline" in text
    assert "A: base.stageprof" in text
    assert "B: head.stageprof" in text
    assert "?recording=" not in re.sub(r"<script.*?</script>", "", text.replace("\\u003c", "<"))


def test_the_page_asks_for_nothing(page: Path) -> None:
    text = page.read_text("utf-8")

    assert "default-src 'none'" in text
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=\"https?:", text)
