"""docs/stages.md says what each stage and step is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stageprof_collectors.findings.catalogue import known
from stageprof_runtime.stage import STEPS, Stage

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "stages.md").read_text()


def section(stage: Stage) -> str:
    """What the page says of a stage."""
    return PAGE.partition(f"\n## {stage}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_has_a_section(stage: Stage) -> None:
    assert section(stage).strip()


@pytest.mark.parametrize("stage", Stage)
def test_a_section_has_the_steps_of_its_stage_and_no_others(stage: Stage) -> None:
    said = re.findall(r"^\| `([a-z.]+)` \|", section(stage), re.MULTILINE)
    assert said == [step for of, step in STEPS if of == stage and step]


def test_findings_that_the_page_names_are_rules() -> None:
    assert set(re.findall(r"findings\.md#([a-z-]+)", PAGE)) <= set(known().rules)


@pytest.mark.parametrize("page", ["../README.md", "json.md", "recording.md"])
def test_who_reads_of_stages_is_shown_the_way(page: str) -> None:
    assert "stages.md" in (DOCS / page).read_text()
