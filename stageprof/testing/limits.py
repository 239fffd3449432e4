"""The limits of a test: what `@pytest.mark.stageprof(...)` says, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from stageprof_collectors.findings.finding import Severity
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stage import Stage

#: A test is called at most this often: more is a slip of the keyboard.
MOST: Final = 10_000

_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) *(ms|s|min|h)", re.ASCII)
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,9})?) *%", re.ASCII)
_UNITS: Final = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class Most(NamedTuple):
    """The most that a stage may take: seconds, or a share of the wall time."""

    value: float
    is_share: bool


class Limits(NamedTuple):
    """How often a test is called, and what it may take; None is no limit."""

    repeat: int = 1
    max_wall_s: float | None = None
    max_stage: tuple[tuple[Stage, Most], ...] = ()
    no_findings_above: Severity | None = None

    @property
    def any(self) -> bool:
        """Whether there is something to judge."""
        return self != Limits(self.repeat)


def limits(given: Mapping[str, Any]) -> Limits:
    """The limits that the arguments of a marker mean.

    Raises:
        UsageError: there is no such argument, or its value makes no sense.
    """
    for name in given:
        if name not in _MEANING:
            raise UsageError(f"{name}={given[name]!r}", expected=f"one of {', '.join(_MEANING)}")
    meant = (_MEANING[name](value) for name, value in given.items() if value is not None)
    return Limits()._replace(**dict(meant))


def _repeat(value: object) -> tuple[str, int]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise _wrong("repeat", value, f"a whole number from 1 to {MOST:,}")
    return "repeat", value


def _max_wall(value: object) -> tuple[str, float]:
    seconds = _seconds(value)
    if seconds is None:
        raise _wrong("max_wall", value, "seconds, or a text like '3s', '500ms' or '2min'")
    return "max_wall_s", seconds


def _max_stage(value: object) -> tuple[str, tuple[tuple[Stage, Most], ...]]:
    if not isinstance(value, Mapping):
        raise _wrong("max_stage", value, "a dict like {'serialization': '10%'}")
    return "max_stage", tuple((_stage(name), _most(name, most)) for name, most in value.items())


def _stage(name: object) -> Stage:
    if not isinstance(name, str) or name not in list(Stage):
        raise UsageError(f"no stage {name!r} in max_stage", expected=f"one of {', '.join(Stage)}")
    return Stage(name)


def _most(name: object, value: object) -> Most:
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if share is not None and float(share[1]) <= 100:
        return Most(float(share[1]) / 100, is_share=True)
    seconds = _seconds(value)
    if seconds is None:
        wanted = "a share like '10%', seconds, or a text like '1.5s'"
        raise _wrong(f"max_stage[{str(name)!r}]", value, wanted)
    return Most(seconds, is_share=False)


def _severity(value: object) -> tuple[str, Severity]:
    graver = list(Severity)[1:]  # nothing is above critical
    if not isinstance(value, str) or value not in graver:
        raise _wrong("no_findings_above", value, f"one of {', '.join(graver)}")
    return "no_findings_above", Severity(value)


def _seconds(value: object) -> float | None:
    """The seconds that a number or a text means; None if it means none."""
    if isinstance(value, str):
        match = _TIME.fullmatch(value.strip())
        return None if match is None else float(match[1]) * _UNITS[match[2]]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) and value >= 0 else None


def _wrong(name: str, value: object, expected: str) -> UsageError:
    return UsageError(f"{name}={value!r}", expected=expected)


_MEANING: Final[Mapping[str, Callable[[object], tuple[str, Any]]]] = {
    "repeat": _repeat,
    "max_wall": _max_wall,
    "max_stage": _max_stage,
    "no_findings_above": _severity,
}
