"""Asking one rule, and running the code that it prints."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_collectors.recording import Recording


def asked(rule: Rule, recording: Recording, **limits: float) -> list[Finding]:
    """What a rule finds, with its own limits but for those given."""
    return list(rule.find(recording, DEFAULTS.of(rule) | limits))


def one(rule: Rule, recording: Recording, **limits: float) -> Finding:
    """The only finding of a rule."""
    [found] = asked(rule, recording, **limits)
    return found


def run(finding: Finding, **names: Any) -> dict[str, Any]:
    """Execute a finding's code among the user's names; what they are afterwards."""
    exec(compile(finding.fix.code, "<fix>", "exec"), names)
    return names
