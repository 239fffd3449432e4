"""Where rules come from: our own package and others', and what cannot be had is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from findings.conftest import Package
from findings.made import THEIRS, made
from stageprof_collectors.findings.catalogue import known

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
