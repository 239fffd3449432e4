"""The settings that hold: what each source says, checked and laid one over the other.

An argument goes before the environment, that before `pyproject.toml`, that before the defaults;
docs/settings.md is the table.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stageprof.source import Source, environment, project, words
from stageprof_collectors.findings.catalogue import Catalogue, known
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.preflight.checkup import CHECKS
from stageprof_runtime.errors import UsageError

#: What a caller may give.
Given = Settings | Mapping[str, Any] | None

_SEVERITIES: Final = ("critical", "serious", "moderate")
_TABLES: Final = ("rules", "severity")
#: The limits of what is asked before a run: most are the rule's own.
PREFLIGHT: Final = {check.id: check.limits for check in CHECKS}
#: In a rule's own table the switch beside its limits.
_SWITCH: Final = "enabled"
_DO: Final = "see https://github.com/stageprof/stageprof/blob/main/docs/settings.md"


def settings_of(given: Given = None) -> Settings:
    """The settings for a call: `given` over the environment over `pyproject.toml`.

    Args:
        given: `{"rules": {"tiny-tasks": False}, "severity": {"serious": 0.2}}`; settings that
            are resolved already are taken as they are.

    Raises:
        UsageError: a name or value in any of them makes no sense.
    """
    if isinstance(given, Settings):
        return given
    source, warning = project()
    if warning:
        warnings.warn(warning, stacklevel=3)
    return resolved(source, environment(), Source("the argument settings", given or {}))


def settings_for(given: Iterable[str]) -> tuple[Settings, str]:
    """The settings for a command with these `--rule` words, and a warning to print ("" if none).

    Raises:
        UsageError: a name or value in any of them makes no sense.
    """
    source, warning = project()
    return resolved(source, environment(), words(given)), warning


def settings_for_run(given: Iterable[str]) -> tuple[Settings, str]:
    """As `settings_for`, but what is wrong with `pyproject.toml` is no reason not to run.

    Raises:
        UsageError: a name or value in `--rule` or the environment makes no sense.
    """
    given = list(given)
    try:
        return settings_for(given)
    except UsageError as error:
        # What is given makes sense by itself, or else it is at fault and this says so.
        return resolved(environment(), words(given)), f"pyproject.toml is not used: {error}"


def settings_to_show() -> tuple[Settings, str]:
    """The settings for showing a recording by itself, which never fails: with what was wrong."""
    try:
        return settings_for(())
    except UsageError as error:
        return DEFAULTS, f"settings are not used: {error}"


def resolved(*sources: Source) -> Settings:
    """Sources one over the other, the last on top.

    Raises:
        UsageError: see above.
    """
    if not any(source.table for source in sources):
        return DEFAULTS
    choices = _Choices(known())
    for source in sources:
        choices.take(source)
    return choices.settings()


@dataclass
class _Choices:
    """What was chosen so far."""

    catalogue: Catalogue
    on: dict[str, bool] = field(default_factory=dict)
    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    severity: dict[str, float] = field(default_factory=dict)

    def settings(self) -> Settings:
        limits = frozenset((rule, name, value) for (rule, name), value in self.limits.items())
        off = frozenset(rule for rule, on in self.on.items() if not on)
        chosen = Settings(off=off, limits=limits, **self.severity)
        if not chosen.critical >= chosen.serious >= chosen.moderate:
            raise UsageError(
                f"severities that begin at {_begins(chosen)}",
                expected="critical at or above serious, and serious at or above moderate",
                do=_DO,
            )
        return chosen

    def take(self, source: Source) -> None:
        """Lay a source over what was chosen."""
        table = _table(source.table, "[tool.stageprof]", source)
        for name in table:
            _known(name, _TABLES, "setting", source)
        for rule, value in _table(table.get("rules", {}), "rules", source).items():
            self._rule(rule, value, source)
        for name, value in _table(table.get("severity", {}), "severity", source).items():
            _known(name, _SEVERITIES, "severity", source)
            self.severity[name] = _share(value, f"severity.{name}", source)

    def _rule(self, rule: Any, value: Any, source: Source) -> None:
        names = dict.fromkeys((*self.catalogue.rules, *self.catalogue.failed, *PREFLIGHT))
        _known(rule, names, "rule", source)
        if isinstance(value, bool):
            self.on[rule] = value
            return
        for name, number in _table(value, f"rule {rule}", source, or_="true or false").items():
            self._limit(rule, name, number, source)

    def _limit(self, rule: str, name: Any, value: Any, source: Source) -> None:
        if name == _SWITCH:
            if not isinstance(value, bool):
                raise _wrong(value, rule, "on or off", source)
            self.on[rule] = value
        elif rule in self.catalogue.rules or rule in PREFLIGHT:
            # What limits a rule that failed has, nobody knows.
            own = self.catalogue.rules[rule].limits if rule in self.catalogue.rules else {}
            _known(name, {**own, **PREFLIGHT.get(rule, {})}, f"limit of {rule}", source)
            self.limits[rule, name] = _finite(value, f"{rule}.{name}", source)


def _known(name: Any, names: Iterable[str], what: str, source: Source) -> None:
    names = list(names)
    if name in names:
        return
    near = difflib.get_close_matches(str(name), names, n=1)
    # Before the source, which may be a long path, for faces cut long messages at their end.
    hint = f": did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"no {what} {name!r}{hint} (in {source.name})",
        expected="" if near else _any_of(names),
        do=_DO,
    )


def _any_of(names: list[str]) -> str:
    if not names:
        return "none, for it has none"
    return f"one of {', '.join(sorted(names))}" if names[1:] else names[0]


def _begins(chosen: Settings) -> str:
    """Where each severity begins."""
    return ", ".join(f"{name} {getattr(chosen, name):g}" for name in _SEVERITIES)


def _table(value: Any, what: str, source: Source, or_: str = "") -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    raise _wrong(value, what, f"{or_} or a table" if or_ else "a table", source)


def _finite(value: Any, what: str, source: Source) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(value, what, "a number", source)
    return float(value)


def _share(value: Any, what: str, source: Source) -> float:
    number = _finite(value, what, source)
    if not 0 <= number <= 1:
        raise _wrong(value, what, "a share from 0 to 1", source)
    return number


def _wrong(value: Any, what: str, expected: str, source: Source) -> UsageError:
    shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return UsageError(f"{what} is {shown} (in {source.name})", expected=expected, do=_DO)
