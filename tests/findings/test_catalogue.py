"""Where rules come from: our own package and others', and what cannot be had is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from docs.limits import END, page
from findings.conftest import Package
from findings.crowded import Program, calls
from findings.made import THEIRS, made
from stageprof_collectors.findings.catalogue import known
from stageprof_collectors.findings.rule import Limit

DOCS = Path(__file__).parents[2] / "docs"


def test_every_module_of_the_catalogue_has_a_sound_rule() -> None:
    catalogue = known()
    assert catalogue.failed == {}
    assert "nothing-to-fix" in catalogue.rules


@pytest.mark.parametrize("id_", known().rules)
def test_every_rule_has_its_section_in_the_documentation(id_: str) -> None:
    assert f"\n## {id_}\n" in (DOCS / "findings.md").read_text()


@pytest.mark.parametrize("id_", known().rules)
def test_every_limit_has_a_reason_and_every_rule_a_sentence(id_: str) -> None:
    entry = known().rules[id_]
    assert entry.summary.endswith(".")
    assert all(limit.reason for limit in entry.limits.values())


@pytest.mark.parametrize("entry", ["theirs = theirs_module", "theirs = theirs_module:RULE"])
def test_rule_of_another_package_is_asked_as_ours_are(entry: str, package: Package) -> None:
    package(THEIRS, entry)
    settings = {"rules": {"their-rule": {"files": 9}}}
    [finding] = [f for f in made().findings(settings) if f.rule == "their-rule"]
    assert finding.headline == "from 9 files"
    assert finding.link == "https://their.example/rules#their-rule"
    assert "theirs" not in known().failed


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(1)",
        "import no_such_module",
        "this is not Python",
        "",
        "RULE = 3",
        THEIRS.replace('Rule("their-rule"', 'Rule("Their Rule"'),
        THEIRS.replace('Rule("their-rule"', 'Rule("nothing-to-fix"'),
        THEIRS.replace("find, {", "None, {"),
        THEIRS.replace('Limit(7, "a week")', "7"),
    ],
)
def test_rule_that_cannot_be_had_is_noted_by_name(source: str, package: Package) -> None:
    package(source)
    recording = made()
    recording.findings()
    assert any(text.startswith("theirs: ") for text in recording.coverage()["rules_failed"])


def test_rule_that_cannot_be_had_is_silenced_by_switching_it_off(package: Package) -> None:
    package("import no_such_module")
    recording = made()
    recording.findings({"rules": {"theirs": False}})
    failed = recording.coverage()["rules_failed"]
    assert not any(text.startswith("theirs: ") for text in failed)


def test_rule_that_the_page_prints_is_asked_instead_of_a_broader_one(package: Package) -> None:
    text = (DOCS / "findings.md").read_text()
    source = text.partition('```python\n"""our_package')[2].partition("```")[0]
    package('"""our_package' + source, "too-many-files = theirs_module")
    program = Program()
    program.tasks(calls(600, "read_file"), work=0.1)
    recording = program.recording()
    first = recording.findings()[0]
    assert (first.rule, first.evidence["files"]) == ("too-many-files", 600)
    assert "tiny-tasks" not in [f.rule for f in recording.findings()]
    assert first.link == "https://our.example/rules#too-many-files"
    assert not recording.coverage()["rules_failed"]


def test_page_has_the_limits_of_every_rule_as_they_are() -> None:
    """If it has not: `python docs/limits.py`."""
    text = (DOCS / "findings.md").read_text()
    assert page(text, known().rules.values()) == text


def test_limit_that_was_changed_is_written_into_the_section_of_its_rule() -> None:
    text = (DOCS / "findings.md").read_text()
    limits = {"share": Limit(0.25, "half of a half")}
    changed = page(text, [replace(known().rules["spilling"], limits=limits)])
    section = changed.partition("\n## spilling\n")[2].partition("\n## ")[0]
    assert section.rstrip().endswith(END)
    assert "| `share` | 0.25 | half of a half |" in section
    assert "| `share` | 0.25 |" not in text


def test_prose_of_the_page_keeps_within_its_width() -> None:
    lines = (DOCS / "findings.md").read_text().splitlines()
    assert not [line for line in lines if len(line) > 100 and not line.startswith("|")]
