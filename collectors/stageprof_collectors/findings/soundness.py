"""Whether what a rule returned is a finding that every face can show.

Rules of other packages are written against a description, and ours have mistakes: what has no
finite seconds, no headline or a link that is none is refused here, with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.rule import Rule
from stageprof_runtime.stage import Stage


def sound(rule: Rule, found: Any) -> Finding:
    """The finding with plain numbers in it.

    Raises:
        ValueError: it is none, or not one of this rule; the message says what is wrong.
    """
    if not isinstance(found, Finding):
        raise ValueError(f"it returned {type(found).__name__}, not Finding")
    _refuse(found.rule != rule.id, "its finding names another rule")
    _refuse(not isinstance(found.severity, Severity), "its severity is none")
    _refuse(found.stage is not None and not isinstance(found.stage, Stage), "its stage is none")
    _refuse(not found.documentation.startswith("https://"), "its documentation is no https link")
    _texts(found)
    return replace(
        found,
        cost_s=_seconds(found.cost_s),
        saving_s=_interval(found.saving_s),
        evidence=_evidence(found.evidence),
        where=replace(found.where, line=_line(found.where.line)),
    )


def _refuse(wrong: Any, why: str) -> None:
    if wrong:
        raise ValueError(why)


def _texts(found: Finding) -> None:
    _refuse(not isinstance(found.where, Where), "its place is no Where")
    _refuse(not isinstance(found.fix, Fix), "its fix is no Fix")
    names = [getattr(found.where, f.name) for f in fields(Where) if f.name != "line"]
    texts = [found.headline, found.cause, *found.also, found.fix.text, found.fix.code, *names]
    _refuse(not all(isinstance(text, str) for text in texts), "a text of it is none")
    _refuse(not found.headline.strip(), "it has no headline")


def _seconds(value: Any) -> float:
    _refuse(not isinstance(value, Real), "its seconds are no number")
    number = float(value)
    _refuse(not math.isfinite(number) or number < 0, f"it has {number} seconds")
    return number


def _interval(value: Any) -> tuple[float, float]:
    _refuse(not isinstance(value, tuple | list) or len(value) != 2, "its saving is no pair")
    low, high = map(_seconds, value)
    _refuse(low > high, f"its saving begins at {low} and ends at {high}")
    return low, high


def _line(value: Any) -> int:
    _refuse(not isinstance(value, Integral), "its line is no number")
    return int(value)


def _evidence(evidence: Any) -> dict[str, float | int | str]:
    _refuse(not isinstance(evidence, Mapping), "its evidence is no mapping")
    return {str(name): _plain(value) for name, value in evidence.items()}


def _plain(value: Any) -> float | int | str:
    """Numbers of numpy are as good as Python's, but json does not know them."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    _refuse(not isinstance(value, Real), f"its evidence holds a {type(value).__name__}")
    return float(value)
