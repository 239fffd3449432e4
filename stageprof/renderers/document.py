"""A recording as one JSON object, for programs; docs/json.md says what its fields mean."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any, Final

from stageprof_collectors.failures import Failures
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.innocence import gil_verdict
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.recording import Recording

#: The name of the form and its version; a new version may take fields away or change them.
SCHEMA: Final = "stageprof.show/1"


def document(recording: Recording, settings: Settings = DEFAULTS) -> dict[str, Any]:
    """The object: plain dicts, lists, texts and finite numbers."""
    found = recording.findings(settings)  # before the coverage, which says what failed
    frame = recording.stages()
    frame = frame.reset_index()[["stage", "wall_s", "share", "busy_s"]]
    whole = {
        "schema": SCHEMA,
        "wall_s": recording.wall,
        "stages": frame.to_dict("records"),
        "findings": [finding(f) for f in found],
        "failures": _failures(recording.failures),
        "coverage": recording.coverage() | {"gil": _gil(recording, settings, found)},
    }
    found_: dict[str, Any] = plain(whole)
    return found_


def _failures(found: Failures) -> dict[str, Any]:
    return {
        "said": found.said,
        "tasks_failed": len(found.failed),
        "runs_retried": len(found.retried),
        "raised": [
            {**raised._asdict(), "runs": runs} for raised, runs in found.kinds(found.rows.tolist())
        ],
        "ended": found.ended and found.ended._asdict(),
    }


def _gil(recording: Recording, settings: Settings, found: list[Finding]) -> dict[str, Any] | None:
    verdict = gil_verdict(recording, settings, found)
    return verdict and verdict._asdict()


def finding(found: Finding) -> dict[str, Any]:
    """A finding; what is in it may still be something that JSON does not know."""
    return {
        "rule": found.rule,
        "severity": str(found.severity),
        "headline": found.headline,
        "stage": None if found.stage is None else str(found.stage),
        "cost_s": found.cost_s,
        "saving_s": found.saving_s,
        "evidence": dict(found.evidence),
        "where": asdict(found.where),
        "fix": asdict(found.fix),
        "link": found.link,
    }


def text(recording: Recording, settings: Settings = DEFAULTS) -> str:
    """The object as strict JSON in ASCII: any terminal and any parser takes it."""
    return json.dumps(document(recording, settings), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """The same of what JSON knows: it knows no NaN, and json no numpy."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
