"""The diagnosis: every rule is asked, and what they found is ranked.

One cause gives one finding, the best are first, and where none matters that is said, with what
the most could be that any change saves. A rule that fails is noted; it never stops the others.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.catalogue import Catalogue, known
from stageprof_collectors.findings.finding import Finding, Severity, at_least, severity
from stageprof_collectors.findings.margin import MARGINS, Margin, widened
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.findings.soundness import sound
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: The rule that is asked only if no other found anything above a note.
NOTHING: Final = "nothing-to-fix"
#: Findings taken from one rule: nobody reads more, and a rule that never ends must end.
MOST: Final = 1000

#: Share of the best saving of a cause that is about as much.
ABOUT: Final = 0.7

#: Called before each rule with how many are done, how many there are, and its id.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Diagnosis:
    """What the rules said of a recording."""

    #: best first
    findings: tuple[Finding, ...]
    #: "rule: why it could not be asked or what was wrong with its answer"
    failed: tuple[str, ...] = ()
    #: ids of the rules that were switched off
    off: tuple[str, ...] = ()
    #: how long it took
    seconds: float = 0.0

    @property
    def above_note(self) -> tuple[Finding, ...]:
        """The findings that are worth acting on."""
        return tuple(f for f in self.findings if f.severity != Severity.NOTE)


def diagnose(recording: Recording, settings: Settings = DEFAULTS) -> list[Finding]:
    """The findings of a recording, best first."""
    return list(examine(recording, settings).findings)


def examine(
    recording: Recording,
    settings: Settings = DEFAULTS,
    *,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Diagnosis:
    """Ask every rule that is on; a recording remembers the answer for each settings.

    Args:
        recording: what to diagnose.
        settings: rules that are off, limits, severities.
        progress: told which rule is asked.
        clock: seconds, for `Diagnosis.seconds`.
    """
    recalled = recording.diagnoses.get(settings)
    if recalled is not None:
        return recalled
    # What rules share is made outside the clock; a damaged recording shows here, not in each rule.
    recording.account.stages()
    start = clock()
    asked = _Round(recording, settings, known())
    found = replace(asked.all(progress or _silent), seconds=clock() - start)
    recording.diagnoses[settings] = found
    return found


def _margin(rule: Rule) -> Margin | None:
    return MARGINS[rule.ground] if rule.ground is not None else None


def _outside_s(recording: Recording) -> float:
    """Seconds of the user's own code, which no fix of Dask's changes and no margin has to cover."""
    return float(recording.account.stages()["wall_s"][Stage.OUTSIDE])


def _silent(_done: int, _of: int, _rule: str) -> None:
    pass


class _Round:
    """One round through the rules."""

    def __init__(self, recording: Recording, settings: Settings, catalogue: Catalogue) -> None:
        self._recording = recording
        self._settings = settings
        self._inside_s = recording.wall - _outside_s(recording)
        self._rules = {i: r for i, r in catalogue.rules.items() if i not in settings.off}
        self._last = self._rules.pop(NOTHING, None)
        broken = {i: why for i, why in catalogue.failed.items() if i not in settings.off}
        self._failed = [f"{name}: {why}" for name, why in broken.items()]

    def all(self, progress: Progress) -> Diagnosis:
        found: list[Finding] = []
        for done, rule in enumerate(self._rules.values()):
            progress(done, len(self._rules), rule.id)
            found += self._ask(rule)
        ranked = sorted(_uncovered(list(_merged(found, self._rules))), key=_rank)
        if self._last is not None and all(f.severity == Severity.NOTE for f in ranked):
            ranked += [replace(f, severity=Severity.NOTE) for f in self._ask(self._last)]
        return Diagnosis(tuple(ranked), tuple(self._failed), tuple(sorted(self._settings.off)))

    def _ask(self, rule: Rule) -> list[Finding]:
        """What a rule found until it ended or failed; both may be."""
        out: list[Finding] = []
        try:
            answer = iter(rule.find(self._recording, self._settings.of(rule)))
            for found in islice(answer, MOST):
                self._take(rule, found, out)
            if next(answer, None) is not None:
                self._failed.append(f"{rule.id}: it found more than {MOST:,}; the rest is left out")
        except (Exception, SystemExit) as error:  # whatever a rule does, the others are asked
            self._failed.append(f"{rule.id}: {type(error).__name__}: {error}")
        return out

    def _take(self, rule: Rule, found: object, out: list[Finding]) -> None:
        try:
            out.append(self._graded(sound(rule, found), _margin(rule)))
        except (ValueError, AttributeError, TypeError) as error:
            self._failed.append(f"{rule.id}: {error}")

    def _graded(self, found: Finding, margin: Margin | None) -> Finding:
        """With its margin, and the user's thresholds unless the rule chose its own severity."""
        wall = self._recording.wall
        saving = widened(found.saving_s, margin, self._inside_s)
        if found.severity != severity(found.saving_s, wall):
            return replace(found, saving_s=saving)
        grade = severity(saving, wall, self._settings.shares)
        return replace(found, saving_s=saving, severity=grade)


def _merged(found: Iterable[Finding], rules: Mapping[str, Rule]) -> Iterator[Finding]:
    """Of the findings with one cause the best; those that name no cause are all kept."""
    causes: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(found, key=_rank):
        if not finding.cause:
            yield finding
        else:
            causes[finding.cause].append(finding)
    for same in causes.values():
        yield _most_precise(same, rules)


def _uncovered(found: list[Finding]) -> Iterator[Finding]:
    """Those whose cause goes by what others say to do, where these save about as much."""
    saved: defaultdict[str, float] = defaultdict(float)
    for one in found:
        for cause in one.also:
            saved[cause] += sum(one.saving_s)
    for one in found:
        if not one.cause or saved.get(one.cause, 0.0) <= ABOUT * sum(one.saving_s):
            yield one


def _most_precise(same: list[Finding], rules: Mapping[str, Rule]) -> Finding:
    """The best, unless another says the same more precisely and saves about as much.

    What one of them takes for grave is grave, whichever is told.
    """
    best = same[0]
    enough = ABOUT * sum(best.saving_s)
    precise = (
        f for f in same if best.rule in rules[f.rule].instead_of and sum(f.saving_s) >= enough
    )
    told = next(precise, best)
    grave = at_least(told.severity, best.severity)
    return told if grave else replace(told, severity=best.severity)


def _rank(finding: Finding) -> tuple[float, float, str, str]:
    """The greater saving first, by its middle; then the greater cost; then by name."""
    return -sum(finding.saving_s) / 2, -finding.cost_s, finding.rule, finding.headline
